-- Stock-Level (clause 2.8): a client's district stays.
\set w_id 1 + :client_id % :scale
\set d_id 1 + :client_id / :scale % 10
\set threshold random(10, 20)
BEGIN;
SELECT d_next_o_id FROM district WHERE d_w_id = :w_id AND d_id = :d_id \gset
SELECT count(DISTINCT s_i_id)
FROM order_line
JOIN stock ON s_w_id = :w_id AND s_i_id = ol_i_id AND s_quantity < :threshold
WHERE ol_w_id = :w_id AND ol_d_id = :d_id
    AND ol_o_id BETWEEN :d_next_o_id - 20 AND :d_next_o_id - 1;
COMMIT;
