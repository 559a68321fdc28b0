//! Statements of pgdyno's own workloads, as `pg_stat_statements` has them.

use std::ops::RangeInclusive;

use super::*;

/// Statements all of whose parameters have a place.
const KNOWN: [&str; 27] = [
    "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
    "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
    "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2",
    "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, \
     CURRENT_TIMESTAMP)",
    "SELECT c FROM sbtest1 WHERE id = $1",
    "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2",
    "SELECT sum(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2",
    "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c",
    "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c",
    "UPDATE sbtest1 SET k = k + $1 WHERE id = $2",
    "DELETE FROM sbtest1 WHERE id = $1",
    "SELECT coalesce((SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY \
     no_o_id LIMIT $3 FOR UPDATE), $4) AS o_id",
    "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
    "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 \
     RETURNING o_c_id AS c_id",
    "UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id \
     = $3",
    "SELECT sum(ol_amount) AS total FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND \
     ol_o_id = $3",
    "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + $2 WHERE \
     c_w_id = $3 AND c_d_id = $4 AND c_id = $5",
    "SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer WHERE w_id = $1 AND \
     c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
    "UPDATE district SET d_next_o_id = d_next_o_id + $1 WHERE d_w_id = $2 AND d_id = $3 \
     RETURNING d_next_o_id - $4 AS o_id, d_tax",
    "INSERT INTO new_order VALUES ($1, $2, $3)",
    "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 \
     AND c_id = $3",
    "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND \
     o_c_id = $3 ORDER BY o_id DESC LIMIT $4",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE \
     ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
     c_since, c_credit_lim, c_discount, c_balance, (c_credit = $1)::int AS is_bad_credit FROM \
     customer WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 FOR UPDATE",
    "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
    "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = \
     ol_i_id AND s_quantity < $2 WHERE ol_w_id = $3 AND ol_d_id = $4 AND ol_o_id BETWEEN $5 - $6 \
     AND $7 - $8",
];

/// Statements with parameters without a place, and what these are part of.
const UNKNOWN: [(&str, &[RangeInclusive<u32>], &str); 18] = [
    (
        "UPDATE sbtest1 SET c = concat_ws($1, $2::bigint, $3::bigint, $4::bigint, $5::bigint, \
         $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint) WHERE id = \
         $12",
        &[1..=11],
        "of a function",
    ),
    (
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, concat_ws($3, $4::bigint, \
         $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, \
         $12::bigint, $13::bigint), concat_ws($14, $15::bigint, $16::bigint, $17::bigint, \
         $18::bigint, $19::bigint)) ON CONFLICT (id) DO NOTHING",
        &[3..=19],
        "of a function",
    ),
    (
        "UPDATE customer SET c_balance = c_balance - $1 / $2, c_ytd_payment = c_ytd_payment + $3 \
         / $4, c_payment_cnt = c_payment_cnt + $5, c_data = left(concat_ws($6, c_id, c_d_id, \
         c_w_id, $7::int, $8::int, $9 / $10, c_data), $11) WHERE c_w_id = $12 AND c_d_id = $13 \
         AND c_id = $14",
        &[1..=4, 6..=11],
        "of a function",
    ),
    (
        "SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + $1) / $2] AS c_id FROM customer \
         WHERE c_w_id = $3 AND c_d_id = $4 AND c_last = last_name($5)",
        &[1..=2, 5..=5],
        "of a function of the database",
    ),
    (
        "UPDATE usertable SET field0 = ycsb_value($1) WHERE ycsb_key = $2 || $3",
        &[1..=3],
        "of a function of the database",
    ),
    (
        "INSERT INTO usertable VALUES ($1 || nextval($2), ycsb_value($3 + $4), ycsb_value($5 + \
         $6), ycsb_value($7 + $8), ycsb_value($9 + $10), ycsb_value($11 + $12), ycsb_value($13 + \
         $14), ycsb_value($15 + $16), ycsb_value($17 + $18), ycsb_value($19 + $20), \
         ycsb_value($21 + $22))",
        &[1..=3, 5..=5, 7..=7, 9..=9, 11..=11, 13..=13, 15..=15, 17..=17, 19..=19, 21..=21],
        "of a function of the database",
    ),
    ("SELECT * FROM usertable WHERE ycsb_key = $1 || $2", &[1..=2], "joined to a text"),
    (
        "SELECT * FROM usertable WHERE ycsb_key >= $1 || $2 ORDER BY ycsb_key LIMIT $3",
        &[1..=2],
        "joined to a text",
    ),
    (
        "SELECT * FROM usertable WHERE ycsb_key = $1 || (SELECT last_value - $2 FROM \
         usertable_number)",
        &[1..=1],
        "joined to a text",
    ),
    (
        "UPDATE warehouse SET w_ytd = w_ytd + $1 / $2 WHERE w_id = $3 RETURNING w_name, \
         w_street_1, w_street_2, w_city, w_state, w_zip",
        &[1..=2],
        "divided",
    ),
    (
        "UPDATE district SET d_ytd = d_ytd + $1 / $2 WHERE d_w_id = $3 AND d_id = $4 RETURNING \
         d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
        &[1..=2],
        "divided",
    ),
    (
        "UPDATE customer SET c_balance = c_balance - $1 / $2, c_ytd_payment = c_ytd_payment + $3 \
         / $4, c_payment_cnt = c_payment_cnt + $5 WHERE c_w_id = $6 AND c_d_id = $7 AND c_id = \
         $8",
        &[1..=4],
        "divided",
    ),
    (
        "INSERT INTO history SELECT $1, $2, $3, $4, $5, now(), $6 / $7, w_name || $8 || d_name \
         FROM warehouse, district WHERE w_id = $9 AND d_w_id = $10 AND d_id = $11",
        &[6..=8],
        "divided",
    ),
    (
        "INSERT INTO orders VALUES ($1, $2, $3, $4, now(), $5, $6, ($7 = ALL ((ARRAY[$8, $9, \
         $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
         $22]::int[])[$23:($24)]))::int)",
        &[7..=24],
        "of an array or its subscript",
    ),
    (
        "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id = ANY ((ARRAY[$1, $2, $3, $4, \
         $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15]::int[])[$16:($17)])",
        &[16..=17],
        "of an array or its subscript",
    ),
    (
        "SELECT s_w_id, s_i_id, s_quantity, s_data FROM stock WHERE (s_w_id, s_i_id) IN (SELECT \
         * FROM unnest((ARRAY[$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
         $15]::int[])[$16:($17)], (ARRAY[$18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, \
         $29, $30, $31, $32]::int[])[$33:($34)])) ORDER BY s_w_id, s_i_id FOR UPDATE",
        &[1..=34],
        "of an array or its subscript",
    ),
    (
        "INSERT INTO order_line SELECT $1, $2, $3, number, item_id, supply, $4, quantity, \
         quantity * i_price, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[$5] FROM unnest((ARRAY[$6, $7, \
         $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20]::int[])[$21:($22)], \
         (ARRAY[$23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, \
         $37]::int[])[$38:($39)], (ARRAY[$40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, \
         $51, $52, $53, $54]::int[])[$55:($56)]) WITH ORDINALITY AS line(item_id, supply, \
         quantity, number) JOIN item ON i_id = item_id JOIN stock ON s_w_id = supply AND s_i_id = \
         item_id",
        &[5..=56],
        "of an array or its subscript",
    ),
    (
        "UPDATE stock SET s_quantity = s_quantity - $1 + CASE WHEN s_quantity >= $2 + $3 THEN $4 \
         ELSE $5 END, s_ytd = s_ytd + $6, s_order_cnt = s_order_cnt + $7, s_remote_cnt = \
         s_remote_cnt + (s_w_id <> $8)::int WHERE s_w_id = $9 AND s_i_id = $10",
        &[4..=5],
        "of a sum of more than two",
    ),
];

#[test]
fn parameters_of_pgdyno_s_own_workloads_have_places() {
    for sql in KNOWN {
        let statement = parse(sql).unwrap();
        let without = statement.parameters.keys().find(|n| !statement.places.contains_key(n));
        assert_eq!(without, None, "{sql}");
    }
    for (sql, expected, why) in UNKNOWN {
        let statement = parse(sql).unwrap();
        let has_none = |number: &u32| !statement.places.contains_key(number);
        let found: Vec<u32> = statement.parameters.keys().copied().filter(has_none).collect();
        let expected: Vec<u32> = expected.iter().cloned().flatten().collect();
        assert_eq!(found, expected, "{why}: {sql}");
    }
}
