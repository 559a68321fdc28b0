-- Order-Status (clause 2.6): 60% by a last name.
\set w_id 1 + :client_id % :scale
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set number ((random(0, 255) | random(0, 999)) + 223) % 1000
\set is_named random(1, 100) <= 60
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_status(:w_id, :d_id, :c_id, CASE WHEN :is_named THEN last_name(:number) END);
