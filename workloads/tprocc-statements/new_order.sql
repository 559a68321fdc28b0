-- New-Order (clause 2.4): 5 to 15 lines, 1% of them from another warehouse. 1% of orders name an
-- item that is not there, and are rolled back (clause 2.4.1.4); such a transaction counts. Line 1
-- names that item, and its stock is taken last.
--
-- As in go-tpc, one SELECT reads all items, one reads and locks their stock, and one INSERT writes all
-- lines. Stock is locked in the order of its key: two orders cannot deadlock, and no client has to
-- sort.
--
-- pgbench does not quote variables, so texts are read but never sent back: the INSERT takes s_dist_xx
-- and prices on the server. The order's total is the client's arithmetic, and is left out.
\set w_id 1 + :client_id % :scale
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set lines random(5, 15)
\set rolled_back random(1, 100) = 1
\set i1 case when :rolled_back then 100001 else ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1 end
\set s1 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q1 random(1, 10)
\set i2 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s2 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q2 random(1, 10)
\set i3 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s3 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q3 random(1, 10)
\set i4 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s4 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q4 random(1, 10)
\set i5 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s5 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q5 random(1, 10)
\set i6 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s6 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q6 random(1, 10)
\set i7 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s7 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q7 random(1, 10)
\set i8 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s8 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q8 random(1, 10)
\set i9 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s9 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q9 random(1, 10)
\set i10 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s10 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q10 random(1, 10)
\set i11 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s11 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q11 random(1, 10)
\set i12 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s12 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q12 random(1, 10)
\set i13 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s13 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q13 random(1, 10)
\set i14 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s14 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q14 random(1, 10)
\set i15 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
\set s15 case when random(1, 100) > 1 then :w_id else 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale end
\set q15 random(1, 10)
BEGIN;
SELECT w_tax, c_discount, c_last, c_credit
FROM warehouse, customer WHERE w_id = :w_id AND c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_next_o_id - 1 AS o_id, d_tax \gset
INSERT INTO orders VALUES (
    :o_id, :d_id, :w_id, :c_id, now(), NULL, :lines,
    (:w_id = ALL (
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12,
           :s13, :s14, :s15]::int[])[1:(:lines)]))::int);
INSERT INTO new_order VALUES (:o_id, :d_id, :w_id);
SELECT i_id, i_price, i_name, i_data
FROM item WHERE i_id = ANY (
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12,
           :i13, :i14, :i15]::int[])[1:(:lines)]);
SELECT s_w_id, s_i_id, s_quantity, s_data
FROM stock WHERE (s_w_id, s_i_id) IN (SELECT * FROM unnest(
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12,
           :s13, :s14, :s15]::int[])[1:(:lines)],
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12,
           :i13, :i14, :i15]::int[])[1:(:lines)]))
ORDER BY s_w_id, s_i_id FOR UPDATE;
UPDATE stock SET
    s_quantity = s_quantity - :q2 + CASE WHEN s_quantity >= :q2 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q2,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s2 AND s_i_id = :i2;
UPDATE stock SET
    s_quantity = s_quantity - :q3 + CASE WHEN s_quantity >= :q3 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q3,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s3 AND s_i_id = :i3;
UPDATE stock SET
    s_quantity = s_quantity - :q4 + CASE WHEN s_quantity >= :q4 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q4,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s4 AND s_i_id = :i4;
UPDATE stock SET
    s_quantity = s_quantity - :q5 + CASE WHEN s_quantity >= :q5 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q5,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s5 AND s_i_id = :i5;
\if :lines >= 6
UPDATE stock SET
    s_quantity = s_quantity - :q6 + CASE WHEN s_quantity >= :q6 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q6,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s6 AND s_i_id = :i6;
\endif
\if :lines >= 7
UPDATE stock SET
    s_quantity = s_quantity - :q7 + CASE WHEN s_quantity >= :q7 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q7,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s7 AND s_i_id = :i7;
\endif
\if :lines >= 8
UPDATE stock SET
    s_quantity = s_quantity - :q8 + CASE WHEN s_quantity >= :q8 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q8,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s8 AND s_i_id = :i8;
\endif
\if :lines >= 9
UPDATE stock SET
    s_quantity = s_quantity - :q9 + CASE WHEN s_quantity >= :q9 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q9,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s9 AND s_i_id = :i9;
\endif
\if :lines >= 10
UPDATE stock SET
    s_quantity = s_quantity - :q10 + CASE WHEN s_quantity >= :q10 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q10,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s10 AND s_i_id = :i10;
\endif
\if :lines >= 11
UPDATE stock SET
    s_quantity = s_quantity - :q11 + CASE WHEN s_quantity >= :q11 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q11,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s11 AND s_i_id = :i11;
\endif
\if :lines >= 12
UPDATE stock SET
    s_quantity = s_quantity - :q12 + CASE WHEN s_quantity >= :q12 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q12,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s12 AND s_i_id = :i12;
\endif
\if :lines >= 13
UPDATE stock SET
    s_quantity = s_quantity - :q13 + CASE WHEN s_quantity >= :q13 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q13,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s13 AND s_i_id = :i13;
\endif
\if :lines >= 14
UPDATE stock SET
    s_quantity = s_quantity - :q14 + CASE WHEN s_quantity >= :q14 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q14,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s14 AND s_i_id = :i14;
\endif
\if :lines >= 15
UPDATE stock SET
    s_quantity = s_quantity - :q15 + CASE WHEN s_quantity >= :q15 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q15,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s15 AND s_i_id = :i15;
\endif
\if :rolled_back
ROLLBACK;
\else
UPDATE stock SET
    s_quantity = s_quantity - :q1 + CASE WHEN s_quantity >= :q1 + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + :q1,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + (s_w_id <> :w_id)::int
WHERE s_w_id = :s1 AND s_i_id = :i1;
INSERT INTO order_line
SELECT :o_id, :d_id, :w_id, number, item_id, supply, NULL, quantity, quantity * i_price,
    (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05,
           s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[:d_id]
FROM unnest(
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12,
           :i13, :i14, :i15]::int[])[1:(:lines)],
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12,
           :s13, :s14, :s15]::int[])[1:(:lines)],
    (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12,
           :q13, :q14, :q15]::int[])[1:(:lines)])
    WITH ORDINALITY AS line(item_id, supply, quantity, number)
JOIN item ON i_id = item_id
JOIN stock ON s_w_id = supply AND s_i_id = item_id;
COMMIT;
\endif
