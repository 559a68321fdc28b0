-- The tables of TPC Benchmark C (revision 5.11, clause 1.3), and its five transactions as functions.
CREATE TABLE warehouse (
    w_id int NOT NULL, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20),
    w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2));
CREATE TABLE district (
    d_id smallint NOT NULL, d_w_id int NOT NULL, d_name varchar(10), d_street_1 varchar(20),
    d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9),
    d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id int);
CREATE TABLE customer (
    c_id int NOT NULL, c_d_id smallint NOT NULL, c_w_id int NOT NULL, c_first varchar(16),
    c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20),
    c_city varchar(20), c_state char(2), c_zip char(9), c_phone char(16), c_since timestamptz,
    c_credit char(2), c_credit_lim numeric(12,2), c_discount numeric(4,4),
    c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, c_delivery_cnt int,
    c_data varchar(500));
CREATE TABLE history (
    h_c_id int, h_c_d_id smallint, h_c_w_id int, h_d_id smallint, h_w_id int, h_date timestamptz,
    h_amount numeric(6,2), h_data varchar(24));
CREATE TABLE orders (
    o_id int NOT NULL, o_d_id smallint NOT NULL, o_w_id int NOT NULL, o_c_id int,
    o_entry_d timestamptz, o_carrier_id smallint, o_ol_cnt smallint, o_all_local smallint);
CREATE TABLE new_order (no_o_id int NOT NULL, no_d_id smallint NOT NULL, no_w_id int NOT NULL);
CREATE TABLE order_line (
    ol_o_id int NOT NULL, ol_d_id smallint NOT NULL, ol_w_id int NOT NULL,
    ol_number smallint NOT NULL, ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamptz,
    ol_quantity smallint, ol_amount numeric(6,2), ol_dist_info char(24));
CREATE TABLE item (
    i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50));
CREATE TABLE stock (
    s_i_id int NOT NULL, s_w_id int NOT NULL, s_quantity smallint, s_dist_01 char(24),
    s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24),
    s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24),
    s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50));

-- Clause 4.3.2.3.
CREATE FUNCTION last_name(number int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT w[number / 100 + 1] || w[number / 10 % 10 + 1] || w[number % 10 + 1]
    FROM (VALUES (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION',
                        'EING'])) AS v(w)
$$;

-- The customer of a last name that stands in the middle, by first names (clause 2.5.2.2).
CREATE FUNCTION customer_called(w int, d int, last text) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2]
    FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last
$$;

-- Clause 2.4. An item that is not there gives null: the caller then rolls back. Lines are taken in the
-- order of their stock, so that two orders do not wait for each other.
CREATE FUNCTION new_order(
    w int, d int, c int, items int[], supplies int[], quantities int[], is_invalid boolean)
RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
    o int; tax numeric; discount numeric; line record; price numeric; info text;
    total numeric := 0;
BEGIN
    IF is_invalid THEN
        items[cardinality(items)] := 100001;
    END IF;
    SELECT w_tax, c_discount INTO tax, discount
    FROM warehouse, customer WHERE w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
    RETURNING d_next_o_id - 1, tax + d_tax INTO o, tax;
    INSERT INTO orders VALUES (
        o, d, w, c, now(), NULL, cardinality(items), (w = ALL (supplies))::int);
    INSERT INTO new_order VALUES (o, d, w);
    FOR line IN
        SELECT * FROM unnest(items, supplies, quantities) WITH ORDINALITY
            AS l(item, supply, quantity, number)
        ORDER BY supply, item
    LOOP
        SELECT i_price INTO price FROM item WHERE i_id = line.item;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        UPDATE stock SET
            s_quantity = s_quantity - line.quantity
                + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + line.quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (line.supply <> w)::int
        WHERE s_i_id = line.item AND s_w_id = line.supply
        RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06,
                         s_dist_07, s_dist_08, s_dist_09, s_dist_10])[d] INTO info;
        INSERT INTO order_line VALUES (
            o, d, w, line.number, line.item, line.supply, NULL, line.quantity,
            line.quantity * price, info);
        total := total + line.quantity * price;
    END LOOP;
    RETURN total * (1 - discount) * (1 + tax);
END
$$;

-- Clause 2.5. Without a last name, `c` is the customer's number.
CREATE FUNCTION payment(
    w int, d int, cw int, cd int, c int, last text, amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
    of_warehouse text; of_district text; balance numeric;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO of_warehouse;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d
    RETURNING d_name INTO of_district;
    IF last IS NOT NULL THEN
        c := customer_called(cw, cd, last);
    END IF;
    UPDATE customer SET
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE c_credit
            WHEN 'BC' THEN left(concat_ws(' ', c, cd, cw, d, w, amount, c_data), 500)
            ELSE c_data END
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = c RETURNING c_balance INTO balance;
    INSERT INTO history VALUES (
        c, cd, cw, d, w, now(), amount, of_warehouse || '    ' || of_district);
    RETURN balance;
END
$$;

-- Clause 2.6: the lines of the customer's newest order.
CREATE FUNCTION order_status(w int, d int, c int, last text) RETURNS SETOF order_line
LANGUAGE plpgsql STABLE AS $$
DECLARE
    o int;
BEGIN
    IF last IS NOT NULL THEN
        c := customer_called(w, d, last);
    END IF;
    PERFORM c_balance, c_first, c_middle, c_last FROM customer
    WHERE c_w_id = w AND c_d_id = d AND c_id = c;
    SELECT o_id INTO o FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = c
    ORDER BY o_id DESC LIMIT 1;
    RETURN QUERY SELECT * FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
END
$$;

-- Clause 2.7: the oldest new order of each district. Returns how many there were.
CREATE FUNCTION delivery(w int, carrier int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    o int; c int; total numeric; delivered int := 0;
BEGIN
    FOR d IN 1..10 LOOP
        SELECT no_o_id INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d
        ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
        UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = o
        RETURNING o_c_id INTO c;
        WITH lines AS (
            UPDATE order_line SET ol_delivery_d = now()
            WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o RETURNING ol_amount)
        SELECT sum(ol_amount) INTO total FROM lines;
        UPDATE customer SET
            c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = w AND c_d_id = d AND c_id = c;
        delivered := delivered + 1;
    END LOOP;
    RETURN delivered;
END
$$;

-- Clause 2.8: items of the newest twenty orders of which few are in stock.
CREATE FUNCTION stock_level(w int, d int, threshold int) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(DISTINCT s_i_id)
    FROM district
    JOIN order_line ON ol_w_id = w AND ol_d_id = d
        AND ol_o_id BETWEEN d_next_o_id - 20 AND d_next_o_id - 1
    JOIN stock ON s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold
    WHERE d_w_id = w AND d_id = d
$$;
