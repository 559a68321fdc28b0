-- Delivery (clause 2.7), at once in place of queued: the oldest new order of each district.
--
-- Two deliveries of a warehouse may meet. The second waits at FOR UPDATE, finds the row deleted and
-- takes the order after it. A district without new orders gives 0 and is skipped.
\set w_id 1 + :client_id % :scale
\set carrier random(1, 10)
BEGIN;
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 1
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 1 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 1 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 1 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 1 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 1 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 2
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 2 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 2 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 2 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 2 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 2 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 3
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 3 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 3 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 3 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 3 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 3 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 4
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 4 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 4 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 4 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 4 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 4 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 5
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 5 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 5 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 5 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 5 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 5 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 6
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 6 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 6 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 6 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 6 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 6 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 7
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 7 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 7 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 7 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 7 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 7 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 8
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 8 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 8 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 8 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 8 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 8 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 9
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 9 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 9 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 9 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 9 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 9 AND c_id = :c_id;
\endif
SELECT coalesce((
    SELECT no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = 10
    ORDER BY no_o_id LIMIT 1 FOR UPDATE), 0) AS o_id \gset
\if :o_id > 0
DELETE FROM new_order WHERE no_w_id = :w_id AND no_d_id = 10 AND no_o_id = :o_id;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w_id AND o_d_id = 10 AND o_id = :o_id
RETURNING o_c_id AS c_id \gset
UPDATE order_line SET ol_delivery_d = now()
WHERE ol_w_id = :w_id AND ol_d_id = 10 AND ol_o_id = :o_id;
SELECT sum(ol_amount) AS total FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = 10 AND ol_o_id = :o_id \gset
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = :w_id AND c_d_id = 10 AND c_id = :c_id;
\endif
COMMIT;
