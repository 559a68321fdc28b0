//! JSON objects by row, as text.

use super::drawn::{Choice, Length};
use super::generator::{CopyError, JsonMember, JsonValue};
use super::number::Number;
use super::piece::{Column, number};
use super::row_random::RowRandom;
use crate::digits;

/// Object whose members are made by row.
#[derive(Clone, Debug)]
pub(super) struct Object {
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    /// Text before its value: a brace or a comma, the quoted name, a colon.
    before: Vec<u8>,
    value: Value,
    draw_null: RowRandom,
    /// It is null where what is drawn lies below.
    null_below: u64,
}

#[derive(Clone, Debug)]
enum Value {
    Number(Number),
    /// Number of the last digit's units, and the digits after the point.
    Decimal(Number, u8),
    Letters(Length),
    Choice(Choice<String>),
    Object(Object),
}

impl Object {
    /// Creates the object of `members` for `column`.
    pub(super) fn new(members: &[JsonMember], column: &Column<'_>) -> Result<Self, CopyError> {
        let member = |(place, member): (usize, &JsonMember)| {
            // Each member draws for itself.
            let name = format!("{}\0{}", column.name, member.name);
            let column = Column { name: &name, ..*column };
            let brace = if place == 0 { '{' } else { ',' };
            Ok(Member {
                before: format!("{brace}{}:", member.name).into_bytes(),
                value: Value::new(&member.value, &column)?,
                draw_null: column.draw_for("null"),
                null_below: super::open_field::below(member.null),
            })
        };
        let members = members.iter().enumerate().map(member).collect::<Result<_, _>>()?;
        Ok(Self { members })
    }

    pub(super) fn write(&self, row: u64, out: &mut Vec<u8>) {
        for member in &self.members {
            out.extend_from_slice(&member.before);
            match member.draw_null.bits(row, 0) < member.null_below {
                true => out.extend_from_slice(b"null"),
                false => member.value.write(row, out),
            }
        }
        out.extend_from_slice(if self.members.is_empty() { b"{}" } else { b"}" });
    }
}

impl Value {
    fn new(value: &JsonValue, column: &Column<'_>) -> Result<Self, CopyError> {
        let draw = column.draw();
        Ok(match value {
            JsonValue::Integer(integers) => Self::Number(number(integers, column, column.rows).1),
            JsonValue::Decimal { low, high, digits } => {
                let span = high.wrapping_sub(*low).cast_unsigned();
                Self::Decimal(Number::Drawn(draw, *low, span), *digits)
            }
            JsonValue::Letters { least, most } => Self::Letters(Length::new(draw, *least, *most)),
            JsonValue::Choice(texts) => Self::Choice(Choice::new(draw, texts.iter().cloned())),
            JsonValue::Object(members) => Self::Object(Object::new(members, column)?),
        })
    }

    fn write(&self, row: u64, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => digits::write_signed(number.at(row), out),
            Self::Decimal(number, places) => {
                let (value, unit) = (number.at(row).unsigned_abs(), 10_u64.pow((*places).into()));
                digits::write(value / unit, out);
                if *places > 0 {
                    out.push(b'.');
                    let fraction = value % unit;
                    let zeros = (1..*places).filter(|place| fraction < 10_u64.pow((*place).into()));
                    out.extend(zeros.map(|_| b'0'));
                    digits::write(fraction, out);
                }
            }
            Self::Letters(length) => {
                out.push(b'"');
                length.write_letters(row, length.at(row), out);
                out.push(b'"');
            }
            Self::Choice(texts) => {
                let text = texts.at(row).map_or("null", String::as_str);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Object(object) => object.write(row, out),
        }
    }
}
