-- Payment (clause 2.5): 15% by a customer of another warehouse, 60% by a last name.
\set w_id 1 + :client_id % :scale
\set d_id random(1, 10)
\set is_remote random(1, 100) > 85
\set cw_id case when :is_remote then 1 + (:w_id - 1 + random(1, greatest(:scale - 1, 1))) % :scale else :w_id end
\set cd_id case when :is_remote then random(1, 10) else :d_id end
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set number ((random(0, 255) | random(0, 999)) + 223) % 1000
\set is_named random(1, 100) <= 60
\set cents random(100, 500000)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :cents / 100.0 WHERE w_id = :w_id
RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip;
UPDATE district SET d_ytd = d_ytd + :cents / 100.0 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip;
\if :is_named
SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] AS c_id
FROM customer WHERE c_w_id = :cw_id AND c_d_id = :cd_id AND c_last = last_name(:number) \gset
\endif
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
    c_credit_lim, c_discount, c_balance, (c_credit = 'BC')::int AS is_bad_credit
FROM customer WHERE c_w_id = :cw_id AND c_d_id = :cd_id AND c_id = :c_id FOR UPDATE \gset
\if :is_bad_credit
UPDATE customer SET
    c_balance = c_balance - :cents / 100.0,
    c_ytd_payment = c_ytd_payment + :cents / 100.0,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = left(concat_ws(
        ' ', c_id, c_d_id, c_w_id, :d_id::int, :w_id::int, :cents / 100.0, c_data), 500)
WHERE c_w_id = :cw_id AND c_d_id = :cd_id AND c_id = :c_id;
\else
UPDATE customer SET
    c_balance = c_balance - :cents / 100.0,
    c_ytd_payment = c_ytd_payment + :cents / 100.0,
    c_payment_cnt = c_payment_cnt + 1
WHERE c_w_id = :cw_id AND c_d_id = :cd_id AND c_id = :c_id;
\endif
INSERT INTO history
SELECT :c_id, :cd_id, :cw_id, :d_id, :w_id, now(), :cents / 100.0, w_name || '    ' || d_name
FROM warehouse, district WHERE w_id = :w_id AND d_w_id = :w_id AND d_id = :d_id;
COMMIT;
