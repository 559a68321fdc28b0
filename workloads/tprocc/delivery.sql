-- Delivery (clause 2.7), at once in place of queued.
\set w_id 1 + :client_id % :scale
\set carrier random(1, 10)
SELECT delivery(:w_id, :carrier);
