use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use super::*;

fn writer(columns: &[(&str, Generator, ColumnKind)]) -> RowWriter {
    RowWriter::new(1, "t", 1_000, columns).unwrap()
}

fn row(writer: &RowWriter, row: u64) -> Vec<u8> {
    let mut out = Vec::new();
    writer.write(row, &mut out);
    out
}

fn uniform(low: i64, high: i64) -> Generator {
    Generator::Integer(Integers::Uniform { low, high })
}

fn counter(every: NonZeroU64, cycle: Option<NonZeroU64>, from: i64) -> Generator {
    Generator::Integer(Integers::Counter { every, cycle, from })
}

/// The fields of one row, as COPY's documentation has them.
fn fields(row: &[u8]) -> Vec<Vec<u8>> {
    let (count, mut rest) = row.split_at(2);
    let mut fields = Vec::new();
    for _ in 0..u16::from_be_bytes(count.try_into().unwrap()) {
        let (length, after) = rest.split_at(4);
        // A null is told by its length of -1.
        let length = i32::from_be_bytes(length.try_into().unwrap());
        let length = usize::try_from(length).unwrap_or(0);
        fields.push(after[..length].to_vec());
        rest = &after[length..];
    }
    assert!(rest.is_empty(), "{rest:?}");
    fields
}

#[test]
fn a_row_has_its_fields_in_order_whatever_their_sizes() {
    let group = NonZeroU64::new(10).unwrap();
    let w = writer(&[
        ("id", Generator::ROW_NUMBER, ColumnKind::Int4),
        (
            "name",
            Generator::Varying(Varying::Numbered { before: "user ".into(), after: "!".into() }),
            ColumnKind::Text,
        ),
        ("of", counter(group, None, 1), ColumnKind::Int2),
        ("zero", Generator::Constant(vec![0, 0, 0, 7]), ColumnKind::Int4),
        ("at", Generator::Moment { from_us: 5, step_us: 1_000_000 }, ColumnKind::Timestamp),
        ("filler", Generator::Filler { bytes: 12, drawn: 0 }, ColumnKind::Text),
    ]);
    let fields = fields(&row(&w, 21));
    assert_eq!(fields[0], 21_i32.to_be_bytes());
    assert_eq!(fields[1], b"user 21!");
    assert_eq!(fields[2], 3_i16.to_be_bytes());
    assert_eq!(fields[3], [0, 0, 0, 7]);
    assert_eq!(fields[4], 20_000_005_i64.to_be_bytes());
    assert_eq!(fields[5], b"            ");
}

#[test]
fn what_is_drawn_is_even_and_follows_from_seed_and_names_alone() {
    let w = writer(&[("x", uniform(-2, 7), ColumnKind::Int4)]);
    let mut seen = [0_u32; 10];
    for n in 1..=10_000 {
        let value = i32::from_be_bytes(fields(&row(&w, n))[0].clone().try_into().unwrap());
        seen[usize::try_from(value + 2).unwrap()] += 1;
    }
    // 1000 each with a standard deviation of 30: five of them.
    assert!(seen.iter().all(|n| (850..=1150).contains(n)), "{seen:?}");
    let again = writer(&[("x", uniform(-2, 7), ColumnKind::Int4)]);
    assert_eq!(row(&w, 77), row(&again, 77));
    let draws = |seed, table, column| {
        (1..50)
            .map(|n| RowRandom::new(seed, table, column).below_or_at(n, 1 << 40))
            .collect::<Vec<_>>()
    };
    assert_ne!(draws(1, "t", "x"), draws(2, "t", "x"));
    assert_ne!(draws(1, "t", "x"), draws(1, "u", "x"));
    assert_ne!(draws(1, "t", "x"), draws(1, "t", "y"));
    assert_ne!(draws(1, "tx", "y"), draws(1, "t", "xy"));
}

#[test]
fn filler_is_drawn_as_far_as_it_is_asked_to_be() {
    let w = writer(&[("f", Generator::Filler { bytes: 84, drawn: 42 }, ColumnKind::Text)]);
    let (one, two) = (fields(&row(&w, 1)), fields(&row(&w, 2)));
    assert!(
        one[0][..42].iter().all(u8::is_ascii_graphic) && one[0][42..].iter().all(|b| *b == b' ')
    );
    assert_ne!(one, two);
}

#[test]
fn the_whole_of_bigint_can_be_drawn_from() {
    let w = writer(&[("x", uniform(i64::MIN, i64::MAX), ColumnKind::Int8)]);
    assert_ne!(row(&w, 1), row(&w, 2));
}

#[test]
fn what_a_column_cannot_hold_is_refused() {
    let refused =
        |generator, kind| RowWriter::new(1, "t", 40_000, &[("x", generator, kind)]).unwrap_err().1;
    assert_eq!(
        refused(Generator::ROW_NUMBER, ColumnKind::Int2).to_string(),
        "it is to hold 1 to 40000, and its type holds -32768 to 32767"
    );
    assert_eq!(
        refused(Generator::ROW_NUMBER, ColumnKind::Text).to_string(),
        "a counter gives whole numbers, and the column's type is another"
    );
    assert!(matches!(refused(uniform(-1, 5), ColumnKind::Uuid), CopyError::TooBig { .. }));
    assert!(matches!(
        refused(Generator::Filler { bytes: 1, drawn: 0 }, ColumnKind::Int4),
        CopyError::Type { .. }
    ));
    assert!(matches!(
        refused(Generator::Moment { from_us: 0, step_us: 1 }, ColumnKind::Other),
        CopyError::Type { .. }
    ));
}

#[test]
fn a_uuid_holds_the_digits_of_its_number_in_reverse() {
    let writer = writer(&[("id", counter(NonZeroU64::MIN, None, 0x1a2b), ColumnKind::Uuid)]);
    let mut expected = [0; 16];
    expected[..2].copy_from_slice(&[0xb2, 0xa1]);
    expected[8] = 0x80;
    assert_eq!(fields(&row(&writer, 1)), [expected.to_vec()]);
}

#[test]
fn blocks_hold_the_rows_one_after_the_other() {
    let fixed = writer(&[
        ("id", Generator::ROW_NUMBER, ColumnKind::Int8),
        ("drawn", uniform(0, 99), ColumnKind::Int2),
        ("filler", Generator::Filler { bytes: 20, drawn: 12 }, ColumnKind::Text),
    ]);
    let varied = writer(&[
        ("id", Generator::ROW_NUMBER, ColumnKind::Int4),
        (
            "name",
            Generator::Varying(Varying::Numbered { before: "n".into(), after: String::new() }),
            ColumnKind::Text,
        ),
    ]);
    let last = writer(&[(
        "l",
        Generator::Varying(Varying::Letters { least: 0, most: 9, within: None }),
        ColumnKind::Text,
    )]);
    for w in [&fixed, &varied, &last] {
        let mut one_by_one = Vec::new();
        (5..=333).for_each(|n| w.write(n, &mut one_by_one));
        // A block smaller than a row, one that all rows fit into, and some between.
        for size in [1, 100, 1000, 100_000] {
            let mut blocks = BlockWriter::new(w, size);
            let (mut all, mut row) = (Vec::new(), 5);
            while row < 334 {
                let (block, next) = blocks.next(row, 334);
                assert!(next > row);
                all.extend_from_slice(block);
                row = next;
            }
            assert_eq!((row, &all), (334, &one_by_one), "blocks of {size}");
        }
    }
}

/// The values of a column of one `generator` in rows 1 to `rows`.
fn values(generator: Generator, kind: ColumnKind, rows: u64) -> Vec<Vec<u8>> {
    let w = writer(&[("x", generator, kind)]);
    (1..=rows).map(|n| fields(&row(&w, n)).remove(0)).collect()
}

fn integers(generator: Generator, rows: u64) -> Vec<i64> {
    let bytes = |value: Vec<u8>| i64::from_be_bytes(value.try_into().unwrap());
    values(generator, ColumnKind::Int8, rows).into_iter().map(bytes).collect()
}

#[test]
fn a_counter_counts_groups_and_may_begin_anew() {
    let (every, cycle) = (NonZeroU64::new(2).unwrap(), NonZeroU64::new(3));
    let counted = |cycle, from| integers(counter(every, cycle, from), 8);
    assert_eq!(counted(None, 1), [1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(counted(cycle, -1), [-1, -1, 0, 0, 1, 1, -1, -1]);
    // 1,000 rows: the cycle says how high it gets.
    let cycle = NonZeroU64::new(40_000);
    let high = counter(NonZeroU64::MIN, cycle, 32_000);
    let fits = |rows| RowWriter::new(1, "t", rows, &[("x", high.clone(), ColumnKind::Int2)]);
    assert!(fits(700).is_ok() && fits(50_000).is_err());
}

#[test]
fn a_permutation_has_each_number_once_in_each_block() {
    for of in [1, 2, 3, 7, 100] {
        let drawn = integers(
            Generator::Integer(Integers::Permutation(NonZeroU64::new(of).unwrap())),
            3 * of,
        );
        let whole: BTreeSet<i64> = (1..=i64::try_from(of).unwrap()).collect();
        let blocks: Vec<&[i64]> = drawn.chunks(usize::try_from(of).unwrap()).collect();
        for block in &blocks {
            assert_eq!(block.iter().copied().collect::<BTreeSet<_>>(), whole);
        }
        if of == 100 {
            assert!(blocks[0] != blocks[1] && !blocks[0].is_sorted(), "{drawn:?}");
        }
    }
}

#[test]
fn letters_have_every_length_and_choices_their_weights() {
    let drawn = values(
        Generator::Varying(Varying::Letters { least: 8, most: 11, within: None }),
        ColumnKind::Text,
        4_000,
    );
    assert!(drawn.iter().flatten().all(u8::is_ascii_graphic));
    let mut lengths = BTreeMap::new();
    drawn.iter().for_each(|value| *lengths.entry(value.len()).or_insert(0_u32) += 1);
    // A thousand each with a standard deviation of 27: five of them.
    assert_eq!(lengths.keys().copied().collect::<Vec<_>>(), [8, 9, 10, 11]);
    assert!(lengths.values().all(|n| (860..=1140).contains(n)), "{lengths:?}");
    let choice = vec![(1, b"BC".to_vec()), (0, b"no".to_vec()), (9, b"GC".to_vec())];
    let choice = Generator::Varying(Varying::Choice(choice));
    let bad = values(choice, ColumnKind::Other, 10_000);
    let bad = bad.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let count = |of: &[u8]| bad.iter().filter(|value| **value == of).count();
    assert_eq!((count(b"no"), count(b"BC") + count(b"GC")), (0, 10_000));
    assert!((850..=1150).contains(&count(b"BC")), "{}", count(b"BC"));
}

#[test]
fn a_share_of_values_is_null() {
    let other = Box::new(Generator::ROW_NUMBER);
    let w = writer(&[
        ("x", Generator::Varying(Varying::Nullable { share: 0.3, other }), ColumnKind::Int4),
        ("id", Generator::ROW_NUMBER, ColumnKind::Int4),
    ]);
    let is_null = |n: i32| {
        let fields = fields(&row(&w, n.unsigned_abs().into()));
        assert_eq!(fields[1], n.to_be_bytes());
        assert!(fields[0].is_empty() || fields[0] == n.to_be_bytes());
        fields[0].is_empty()
    };
    let nulls = (1..=10_000).filter(|n| is_null(*n)).count();
    // A standard deviation of 46: five of them.
    assert!((2_770..=3_230).contains(&nulls), "{nulls}");
}

#[test]
fn a_decimal_fraction_is_in_groups_of_four_digits() {
    let of = |units, digits| {
        let generator = Generator::Decimal { low: units, high: units, digits };
        let value = values(generator, ColumnKind::Numeric, 1).remove(0);
        let words = value.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
        words.collect::<Vec<_>>()
    };
    // Groups, weight of the first one, sign, digits after the point; then the groups.
    assert_eq!(of(1_234_567, 2), [4, 2, 0, 2, 0, 1, 2345, 6700]);
    assert_eq!(of(2_000, 4), [4, 2, 0, 4, 0, 0, 0, 2000]);
    assert_eq!(of(7, 0), [3, 2, 0, 0, 0, 0, 7]);
    let refused = Generator::Decimal { low: 0, high: 9, digits: 2 };
    let refused = RowWriter::new(1, "t", 1, &[("x", refused, ColumnKind::Int4)]).unwrap_err().1;
    assert!(matches!(refused, CopyError::Type { generator: "decimal", .. }));
}

fn text(fields: &[Vec<u8>], field: usize) -> String {
    String::from_utf8(fields[field].clone()).unwrap()
}

fn int4(fields: &[Vec<u8>], field: usize) -> i32 {
    i32::from_be_bytes(fields[field].clone().try_into().unwrap())
}

#[test]
fn children_know_their_parent_and_parents_count_them() {
    let families = Families { parents: "orders".into(), least: 2, most: 4 };
    let of_three = NonZeroU64::new(3).unwrap();
    let in_turn = Integers::Counter { every: NonZeroU64::MIN, cycle: Some(of_three), from: 1 };
    let place = Place { rows: 2, of: of_three, families: Some(families.clone()) };
    let paid = Varying::First { place, first: Some(Box::new(uniform(7, 7))), rest: None };
    let integer = |integers| Generator::Integer(integers);
    let lines = [
        (
            "order",
            integer(Integers::OfParent(families.clone(), Box::new(in_turn))),
            ColumnKind::Int4,
        ),
        ("number", integer(Integers::ChildNumber(families.clone())), ColumnKind::Int4),
        ("paid", Generator::Varying(paid), ColumnKind::Int4),
    ];
    let orders = [("lines", integer(Integers::Children(families.clone())), ColumnKind::Int4)];
    let children = families.children(9, 20);
    let lines = RowWriter::new(9, "lines", children, &lines).unwrap();
    let orders = RowWriter::new(9, "orders", 20, &orders).unwrap();
    let mut line = 0;
    for order in 1..=20 {
        let count = int4(&fields(&row(&orders, order)), 0);
        for number in 1..=count {
            line += 1;
            let found = fields(&row(&lines, line));
            let place = i32::try_from((order - 1) % 3).unwrap();
            assert_eq!((int4(&found, 0), int4(&found, 1)), (place + 1, number));
            // A null has no bytes.
            assert_eq!(found[2].len(), if place < 2 { 4 } else { 0 }, "order {order}");
        }
    }
    assert_eq!(line, children);
}

#[test]
fn last_names_and_their_numbers_are_those_of_tpc_c() {
    let words = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let words = Box::new(words.map(str::to_owned));
    let in_turn = Integers::Counter { every: NonZeroU64::MIN, cycle: None, from: 0 };
    let spelled = Varying::Spelled { number: in_turn, digits: 3, words };
    let w = writer(&[("last", Generator::Varying(spelled), ColumnKind::Text)]);
    // The specification's own example: 371 is PRICALLYOUGHT.
    assert_eq!(text(&fields(&row(&w, 372)), 0), "PRICALLYOUGHT");
    assert_eq!(text(&fields(&row(&w, 41)), 0), "BARPRESBAR");

    let non_uniform = Integers::NonUniform { mask: 255, low: 0, high: 999, shift: 100 };
    let w = writer(&[("n", Generator::Integer(non_uniform), ColumnKind::Int4)]);
    let mut seen = vec![0_u32; 1000];
    for n in 1..=40_000 {
        let value = int4(&fields(&row(&w, n)), 0);
        seen[usize::try_from(value).unwrap()] += 1;
    }
    // Bits that are set in A or B are likelier: 255, moved by 100, is drawn most.
    let likeliest = (0..1000).max_by_key(|n| seen[*n]).unwrap();
    assert_eq!((likeliest + 1000 - 100) % 1000 % 256, 255, "{likeliest}");
    assert!(seen[355] > 10 * seen[100].max(1), "{} {}", seen[355], seen[100]);
}

#[test]
fn digits_and_texts_within_letters_stand_where_they_belong() {
    let digits = Generator::Digits { count: 4, after: "11111".into() };
    let within = Some(("ORIGINAL".to_owned(), 0.1));
    let letters = Generator::Varying(Varying::Letters { least: 26, most: 50, within });
    let w = writer(&[("zip", digits, ColumnKind::Text), ("data", letters, ColumnKind::Text)]);
    let (mut zips, mut originals, mut places) = (BTreeSet::new(), 0, BTreeSet::new());
    for n in 1..=2000 {
        let found = fields(&row(&w, n));
        let (zip, data) = (text(&found, 0), text(&found, 1));
        assert!(zip.len() == 9 && zip.ends_with("11111"), "{zip}");
        assert!(zip.bytes().all(|byte| byte.is_ascii_digit()), "{zip}");
        assert!((26..=50).contains(&data.len()), "{data}");
        zips.insert(zip);
        if let Some(at) = data.find("ORIGINAL") {
            originals += 1;
            places.insert(at);
        }
    }
    // 200 of 2,000, with a standard deviation of 13.
    assert!(zips.len() > 1700 && (133..=267).contains(&originals), "{originals}");
    assert!(places.len() > 20, "{places:?}");
}
