//! TPROC-C: orders, payments and deliveries of TPC-C, without its two transactions that write
//! nothing.
//!
//! A token says which transaction it was: `aid` is the customer who paid, 0 for an order and -1 for
//! a delivery. Payments add one amount to a warehouse, a district and a customer. The rest is held
//! against the tokens by conditions, since rows are added: orders, their lines, and payments'
//! history. Each has the time at which its transaction began, as its token does.

use pgdyno_durability::EffectKey;
use pgdyno_model::ledger::Effect;

use super::crash_load::{Amount, Condition, CrashLoad, LoadedTable};

pub(super) static LOAD: CrashLoad = CrashLoad {
    data_set: "tprocc",
    script: include_str!("tprocc.sql"),
    reset: include_str!("tprocc_reset.sql"),
    loaded: LOADED,
    amounts: AMOUNTS,
    conditions: CONDITIONS,
    rewritten: &[
        ("warehouse", "w_ytd", "w_id = 1"),
        ("district", "d_ytd", "(d_w_id, d_id) = (1, 1)"),
        ("customer", "c_balance", "(c_w_id, c_d_id, c_id) = (1, 1, 1)"),
        ("history", "h_data", "(h_c_w_id, h_c_d_id, h_c_id, h_amount) = (1, 1, 1, 10)"),
        ("orders", "o_ol_cnt", "(o_w_id, o_d_id, o_id) = (1, 1, 1)"),
        (
            "new_order",
            "no_o_id",
            "(no_w_id, no_d_id) = (1, 1) AND no_o_id = \
                (SELECT max(no_o_id) FROM new_order WHERE (no_w_id, no_d_id) = (1, 1))",
        ),
        ("order_line", "ol_amount", "(ol_w_id, ol_d_id, ol_o_id, ol_number) = (1, 1, 1, 1)"),
        ("item", "i_price", "i_id = 1"),
        ("stock", "s_quantity", "(s_w_id, s_i_id) = (1, 1)"),
    ],
    // A payment changes the first two, an order begins with the second, a delivery with the third.
    changed_first: "warehouse, district, new_order",
    changed_most: "stock",
    vacuum: &[
        "VACUUM warehouse, district, customer, history, orders, new_order, order_line, stock, \
        pgdyno_token",
    ],
    create_index: &["CREATE INDEX pgdyno_aim ON customer (c_balance)"],
    take_back,
};

/// Tables whose rows are neither added to nor removed. Columns that are drawn when they are loaded
/// are known by their range alone.
const LOADED: &[LoadedTable] = &[
    LoadedTable {
        table: "warehouse",
        key: "w_id",
        indexed: "w_id",
        constant: "octet_length(w_name) BETWEEN 6 AND 10 \
            AND octet_length(w_city) BETWEEN 10 AND 20 \
            AND w_zip LIKE '____11111' AND w_tax BETWEEN 0 AND 0.2",
    },
    LoadedTable {
        table: "district",
        key: "((d_w_id - 1) * 10 + d_id)",
        indexed: "d_id",
        constant: "octet_length(d_name) BETWEEN 6 AND 10 \
            AND octet_length(d_city) BETWEEN 10 AND 20 \
            AND d_zip LIKE '____11111' AND d_tax BETWEEN 0 AND 0.2",
    },
    LoadedTable {
        table: "customer",
        key: "(((c_w_id - 1) * 10 + c_d_id - 1) * 3000 + c_id)",
        indexed: "c_id",
        constant: "c_middle = 'OE' AND c_credit IN ('GC', 'BC') AND c_credit_lim = 50000 \
            AND c_discount BETWEEN 0 AND 0.5 AND c_zip LIKE '____11111' \
            AND octet_length(c_phone) = 16 AND octet_length(c_data) BETWEEN 300 AND 500 \
            AND (c_id > 1000 OR c_last = last_name(c_id - 1))",
    },
    LoadedTable {
        table: "item",
        key: "i_id",
        indexed: "i_id",
        constant: "i_im_id BETWEEN 1 AND 10000 AND octet_length(i_name) BETWEEN 14 AND 24 \
            AND i_price BETWEEN 1 AND 100 AND octet_length(i_data) BETWEEN 26 AND 50",
    },
    LoadedTable {
        table: "stock",
        key: "((s_w_id - 1) * 100000 + s_i_id)",
        indexed: "s_i_id",
        constant: "s_quantity BETWEEN 10 AND 100 AND octet_length(s_data) BETWEEN 26 AND 50",
    },
];

/// Amounts that payments add up, in cents.
const AMOUNTS: &[Amount] = &[
    Amount {
        holder: "customer",
        key: EffectKey::Account,
        table: "customer",
        sql: "SELECT (((c_w_id - 1) * 10 + c_d_id - 1) * 3000 + c_id)::int8, \
            ((c_ytd_payment - 10) * 100)::int8 FROM customer WHERE c_ytd_payment <> 10",
        is_unique: true,
    },
    Amount {
        holder: "district",
        key: EffectKey::Teller,
        table: "district",
        sql: "SELECT ((d_w_id - 1) * 10 + d_id)::int8, ((d_ytd - 30000) * 100)::int8 \
            FROM district WHERE d_ytd <> 30000",
        is_unique: true,
    },
    Amount {
        holder: "warehouse",
        key: EffectKey::Branch,
        table: "warehouse",
        sql: "SELECT w_id::int8, ((w_ytd - 300000) * 100)::int8 FROM warehouse \
            WHERE w_ytd <> 300000",
        is_unique: true,
    },
];

/// Conditions that hold tables against the tokens, and against each other where TPC-C's own are
/// silent. Of each district's orders 3000 are loaded, the last 900 of them not delivered.
const CONDITIONS: &[Condition] = &[
    Condition {
        condition: "each district counted its orders",
        is_quick: true,
        broken: "SELECT count(*) FROM district LEFT JOIN \
            (SELECT tid, count(*) AS orders FROM pgdyno_token WHERE aid = 0 GROUP BY tid) AS t \
            ON tid = (d_w_id - 1) * 10 + d_id \
            WHERE d_next_o_id <> 3001 + coalesce(orders, 0)",
    },
    Condition {
        condition: "each token of an order has its order",
        is_quick: true,
        broken: "SELECT count(*) FROM \
            (SELECT tid, begun FROM pgdyno_token WHERE aid = 0) AS t FULL JOIN \
            (SELECT (o_w_id - 1) * 10 + o_d_id AS district, o_entry_d::timestamp AS entered \
                FROM orders WHERE o_id > 3000) AS o \
            ON (tid, begun) = (district, entered) WHERE tid IS NULL OR district IS NULL",
    },
    Condition {
        condition: "each token of a payment has its row of history",
        is_quick: true,
        broken: "SELECT count(*) FROM \
            (SELECT aid, tid, bid, delta, begun FROM pgdyno_token WHERE aid > 0) AS t FULL JOIN \
            (SELECT ((h_c_w_id - 1) * 10 + h_c_d_id - 1) * 3000 + h_c_id AS aid, \
                (h_w_id - 1) * 10 + h_d_id AS tid, h_w_id AS bid, (h_amount * 100)::int AS delta, \
                h_date::timestamp AS begun FROM history WHERE h_amount <> 10) AS h \
            USING (aid, tid, bid, delta, begun) WHERE t.aid IS NULL OR h.aid IS NULL",
    },
    Condition {
        condition: "each customer's first payment is in history",
        is_quick: false,
        broken: "SELECT count(*) FROM customer FULL JOIN \
            (SELECT h_c_w_id, h_c_d_id, h_c_id, count(*) AS first FROM history \
                WHERE h_amount = 10 GROUP BY 1, 2, 3) AS h \
            ON (c_w_id, c_d_id, c_id) = (h_c_w_id, h_c_d_id, h_c_id) \
            WHERE c_id IS NULL OR first IS DISTINCT FROM 1",
    },
    Condition {
        // A delivery finds no order in a district that has none left.
        condition: "each district delivered an order for each delivery",
        is_quick: true,
        broken: "SELECT count(*) FROM district LEFT JOIN \
            (SELECT bid, count(*) AS deliveries FROM pgdyno_token WHERE aid = -1 GROUP BY bid) \
                AS t ON bid = d_w_id LEFT JOIN \
            (SELECT o_w_id, o_d_id, count(*) AS orders FROM orders \
                WHERE o_id > 2100 AND o_carrier_id IS NOT NULL GROUP BY 1, 2) AS o \
            ON (o_w_id, o_d_id) = (d_w_id, d_id) \
            WHERE coalesce(orders, 0) > coalesce(deliveries, 0) \
            OR coalesce(orders, 0) < least(coalesce(deliveries, 0), 900)",
    },
    Condition {
        condition: "each customer counted payments and deliveries",
        is_quick: false,
        broken: "SELECT count(*) FROM customer LEFT JOIN \
            (SELECT aid, count(*) AS payments FROM pgdyno_token WHERE aid > 0 GROUP BY aid) AS t \
            ON aid = ((c_w_id - 1) * 10 + c_d_id - 1) * 3000 + c_id LEFT JOIN \
            (SELECT o_w_id, o_d_id, o_c_id, count(*) AS orders FROM orders \
                WHERE o_id > 2100 AND o_carrier_id IS NOT NULL GROUP BY 1, 2, 3) AS o \
            ON (o_w_id, o_d_id, o_c_id) = (c_w_id, c_d_id, c_id) \
            WHERE c_payment_cnt <> 1 + coalesce(payments, 0) \
            OR c_delivery_cnt <> coalesce(orders, 0)",
    },
    Condition {
        condition: "stock gave what the lines of orders took",
        is_quick: false,
        broken: "SELECT count(*) FROM stock FULL JOIN \
            (SELECT ol_supply_w_id, ol_i_id, count(*) AS lines, sum(ol_quantity) AS quantity, \
                count(*) FILTER (WHERE ol_supply_w_id <> ol_w_id) AS remote \
                FROM order_line WHERE ol_o_id > 3000 GROUP BY 1, 2) AS l \
            ON (s_w_id, s_i_id) = (ol_supply_w_id, ol_i_id) \
            WHERE s_order_cnt IS DISTINCT FROM coalesce(lines, 0) \
            OR s_ytd IS DISTINCT FROM coalesce(quantity, 0) \
            OR s_remote_cnt IS DISTINCT FROM coalesce(remote, 0)",
    },
];

/// Takes back a payment. Orders are numbered one after the other, and deliveries take the oldest:
/// neither can be taken from among others.
fn take_back(effect: &Effect) -> Option<String> {
    let Effect { account: customer, teller: district, branch: warehouse, delta } = effect;
    let is_customer = |prefix: &str| {
        format!("(({prefix}w_id - 1) * 10 + {prefix}d_id - 1) * 3000 + {prefix}id = {customer}")
    };
    (*customer > 0).then(|| {
        format!(
            "UPDATE warehouse SET w_ytd = w_ytd - {delta} / 100.0 WHERE w_id = {warehouse}; \
             UPDATE district SET d_ytd = d_ytd - {delta} / 100.0 \
             WHERE (d_w_id - 1) * 10 + d_id = {district}; \
             UPDATE customer SET c_balance = c_balance + {delta} / 100.0, \
             c_ytd_payment = c_ytd_payment - {delta} / 100.0, c_payment_cnt = c_payment_cnt - 1 \
             WHERE {}; \
             DELETE FROM history WHERE {} AND h_amount <> 10 AND h_date::timestamp NOT IN \
             (SELECT begun FROM pgdyno_token WHERE aid = {customer})",
            is_customer("c_"),
            is_customer("h_c_"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payments_are_taken_back_and_orders_and_deliveries_are_not() {
        let effect = |account, delta| Effect { account, teller: 3, branch: 1, delta };
        let payment = take_back(&effect(6_001, 123_456)).unwrap();
        assert!(payment.contains("w_ytd = w_ytd - 123456 / 100.0 WHERE w_id = 1;"), "{payment}");
        assert!(payment.contains("DELETE FROM history WHERE ((h_c_w_id - 1) * 10"), "{payment}");
        assert_eq!([take_back(&effect(0, 0)), take_back(&effect(-1, 0))], [None, None]);
    }
}
