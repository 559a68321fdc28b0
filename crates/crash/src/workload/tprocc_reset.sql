-- Restores the tables but for what TPC-C's conditions and pgdyno's do not look at: the quantities in
-- stock, and the text about customers of bad credit. Of each district's orders 3000 are loaded, of which
-- those beyond 2100 are not delivered. No payment but the loaded ones is of 10.00.
DELETE FROM history WHERE h_amount <> 10;
DELETE FROM new_order WHERE no_o_id > 3000;
DELETE FROM order_line WHERE ol_o_id > 3000;
DELETE FROM orders WHERE o_id > 3000;
UPDATE order_line SET ol_delivery_d = NULL WHERE ol_o_id > 2100 AND ol_delivery_d IS NOT NULL;
UPDATE orders SET o_carrier_id = NULL WHERE o_id > 2100 AND o_carrier_id IS NOT NULL;
INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_id > 2100
    AND NOT EXISTS (SELECT FROM new_order WHERE (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id));
UPDATE customer SET c_balance = -10, c_ytd_payment = 10, c_payment_cnt = 1, c_delivery_cnt = 0
    WHERE c_payment_cnt <> 1 OR c_delivery_cnt <> 0;
UPDATE stock SET s_ytd = 0, s_order_cnt = 0, s_remote_cnt = 0 WHERE s_order_cnt <> 0;
UPDATE district SET d_ytd = 30000, d_next_o_id = 3001;
UPDATE warehouse SET w_ytd = 300000;
