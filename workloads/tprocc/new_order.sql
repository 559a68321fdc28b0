-- New-Order (clause 2.4): 5 to 15 lines, 1% of them from another warehouse. 1% of orders name an item
-- that is not there, and are rolled back (clause 2.4.1.4); such a transaction counts.
\set w_id 1 + :client_id % :scale
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set lines random(5, 15)
\set rolled_back random(1, 100) = 1
\set i1 ((random(0, 8191) | random(1, 100000)) + 5987) % 100000 + 1
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
SELECT new_order(:w_id, :d_id, :c_id,
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14, :i15]::int[])[1:(:lines)],
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1:(:lines)],
    (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1:(:lines)], :rolled_back);
\if :rolled_back
ROLLBACK;
\else
COMMIT;
\endif
