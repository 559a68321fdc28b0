-- New-Order, Payment and Delivery, 50 to 45 to 5. aid is the number of the customer who pays, 0 for an
-- order, -1 for a delivery; tid is the number of the district, 0 for a delivery; delta is in cents.
\set kind random(1, 100)
\set is_order :kind <= 50
\set is_payment :kind > 50 and :kind <= 95
\set w_id random(1, 1 * :scale)
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set other 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale
\set is_remote random(1, 100) > 85
\set cw_id case when :is_remote then :other else :w_id end
\set cd_id case when :is_remote then random(1, 10) else :d_id end
-- No payment is of 10.00, as those are that were loaded.
\set cents random(1001, 500000)
-- Items lie apart by one step; the last line is of another warehouse in one of ten orders.
\set lines random(5, 15)
\set item random(0, 99999)
\set step random(1, 6666)
\set supply case when random(1, 10) = 1 then :other else :w_id end
\set carrier random(1, 10)
\set aid case when :is_payment then ((:cw_id - 1) * 10 + :cd_id - 1) * 3000 + :c_id when :is_order then 0 else -1 end
\set tid case when :is_payment or :is_order then (:w_id - 1) * 10 + :d_id else 0 end
\set bid :w_id
\set delta case when :is_payment then :cents else 0 end
BEGIN;
\if :is_payment
SELECT payment(:w_id, :d_id, :cw_id, :cd_id, :c_id, NULL, :delta / 100.0);
\elif :is_order
SELECT new_order(:w_id, :d_id, :c_id,
    ARRAY(SELECT (:item + n * :step) % 100000 + 1 FROM generate_series(1, :lines) AS n),
    array_fill(:w_id, ARRAY[:lines - 1]) || :supply,
    ARRAY(SELECT (:item + n) % 10 + 1 FROM generate_series(1, :lines) AS n), false);
\else
SELECT delivery(:w_id, :carrier);
\endif
INSERT INTO pgdyno_token (client, sequence, aid, tid, bid, delta) VALUES (:client_id, :sequence, :aid, :tid, :bid, :delta);
END;
