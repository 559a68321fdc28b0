-- Stock-Level (clause 2.8): a client's district stays.
\set w_id 1 + :client_id % :scale
\set d_id 1 + :client_id / :scale % 10
\set threshold random(10, 20)
SELECT stock_level(:w_id, :d_id, :threshold);
