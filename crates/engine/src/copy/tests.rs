use super::*;

fn writer(columns: &[(&str, Generator, ColumnKind)]) -> RowWriter {
    RowWriter::new(1, "t", 1_000, columns).unwrap()
}

fn row(writer: &RowWriter, row: u64) -> Vec<u8> {
    let mut out = Vec::new();
    writer.write(row, &mut out);
    out
}

/// The fields of one row, as COPY's documentation has them.
fn fields(row: &[u8]) -> Vec<Vec<u8>> {
    let (count, mut rest) = row.split_at(2);
    let mut fields = Vec::new();
    for _ in 0..u16::from_be_bytes(count.try_into().unwrap()) {
        let (length, after) = rest.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
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
        ("id", Generator::RowNumber, ColumnKind::Int4),
        (
            "name",
            Generator::Numbered { before: "user ".into(), after: "!".into() },
            ColumnKind::Text,
        ),
        ("of", Generator::GroupOf(group), ColumnKind::Int2),
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
    let w = writer(&[("x", Generator::Uniform { low: -2, high: 7 }, ColumnKind::Int4)]);
    let mut seen = [0_u32; 10];
    for n in 1..=10_000 {
        let value = i32::from_be_bytes(fields(&row(&w, n))[0].clone().try_into().unwrap());
        seen[usize::try_from(value + 2).unwrap()] += 1;
    }
    // 1000 each with a standard deviation of 30: five of them.
    assert!(seen.iter().all(|n| (850..=1150).contains(n)), "{seen:?}");
    let again = writer(&[("x", Generator::Uniform { low: -2, high: 7 }, ColumnKind::Int4)]);
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
    let w =
        writer(&[("x", Generator::Uniform { low: i64::MIN, high: i64::MAX }, ColumnKind::Int8)]);
    assert_ne!(row(&w, 1), row(&w, 2));
}

#[test]
fn what_a_column_cannot_hold_is_refused() {
    let refused =
        |generator, kind| RowWriter::new(1, "t", 40_000, &[("x", generator, kind)]).unwrap_err().1;
    assert_eq!(
        refused(Generator::RowNumber, ColumnKind::Int2).to_string(),
        "it is to hold 1 to 40000, and its type holds -32768 to 32767"
    );
    assert_eq!(
        refused(Generator::RowNumber, ColumnKind::Text).to_string(),
        "row_number gives whole numbers, and the column's type is another"
    );
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
fn blocks_hold_the_rows_one_after_the_other() {
    let fixed = writer(&[
        ("id", Generator::RowNumber, ColumnKind::Int8),
        ("drawn", Generator::Uniform { low: 0, high: 99 }, ColumnKind::Int2),
        ("filler", Generator::Filler { bytes: 20, drawn: 12 }, ColumnKind::Text),
    ]);
    let varied = writer(&[
        ("id", Generator::RowNumber, ColumnKind::Int4),
        (
            "name",
            Generator::Numbered { before: "n".into(), after: String::new() },
            ColumnKind::Text,
        ),
    ]);
    for w in [&fixed, &varied] {
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
