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
SELECT payment(:w_id, :d_id, :cw_id, :cd_id, :c_id, CASE WHEN :is_named THEN last_name(:number) END, :cents / 100.0);
