-- Order-Status (clause 2.6): 60% by a last name.
\set w_id 1 + :client_id % :scale
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set number ((random(0, 255) | random(0, 999)) + 223) % 1000
\set is_named random(1, 100) <= 60
BEGIN;
\if :is_named
SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] AS c_id
FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_last = last_name(:number) \gset
\endif
SELECT c_balance, c_first, c_middle, c_last
FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
SELECT o_id, o_entry_d, o_carrier_id
FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id
ORDER BY o_id DESC LIMIT 1 \gset
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
FROM order_line WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;
COMMIT;
