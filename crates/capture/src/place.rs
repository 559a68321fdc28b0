//! Places of a statement's parameters: the column that each belongs to, or its part in the
//! statement.

use std::collections::BTreeMap;

use squawk_syntax::{SyntaxKind as Kind, SyntaxNode};

/// Column as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    /// Table or alias before the name.
    pub(crate) qualifier: Option<String>,
    pub(crate) name: String,
}

/// Place of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Compared with a column.
    Compared(ColumnName),
    /// Upper end of a range of a column, whose lower end is another parameter.
    RangeEnd(ColumnName, u32),
    /// Equal to another parameter: `a < $1 AND a >= $2 - $3`.
    Same(u32),
    /// Array, one of whose elements equals a column: `a = ANY ($1)`.
    AnyOf(ColumnName),
    /// First of several that a column is compared with; the text leaves the others out, as
    /// PostgreSQL 18 does: `a IN ($1 /*, ... */)`.
    FirstOf(ColumnName),
    /// Assigned to a column by an UPDATE.
    Assigned(ColumnName),
    /// Added to a column, or taken from it.
    Added(ColumnName),
    /// Added to another parameter, or taken from it.
    Distance,
    /// Inserted into a column, whose qualifier is the table.
    Inserted(ColumnName),
    /// Inserted into a table's column of this number, from 0.
    InsertedAt(String, usize),
    /// LIMIT.
    Limit,
    /// OFFSET.
    Offset,
    /// Result column of its own.
    Output,
}

/// Returns the name that `node` spells, as the catalogue has it.
pub(crate) fn name_of(node: &SyntaxNode) -> String {
    let text = node.text().to_string();
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => text.to_lowercase(),
    }
}

/// Returns the parameter that `node` is, through parentheses and casts.
fn parameter(node: &SyntaxNode) -> Option<u32> {
    match node.kind() {
        Kind::LITERAL => node.text().to_string().strip_prefix('$')?.parse().ok(),
        Kind::PAREN_EXPR | Kind::CAST_EXPR => parameter(&node.first_child()?),
        _ => None,
    }
}

/// Returns the parameter that `node` is, or that another one is added to or taken from.
fn first_parameter(node: &SyntaxNode) -> Option<u32> {
    match node.kind() {
        Kind::BIN_EXPR if operator(node) == Operator::Adds => parameter(&node.first_child()?),
        _ => parameter(node),
    }
}

/// Returns the column that `node` is, through parentheses and casts.
fn column(node: &SyntaxNode) -> Option<ColumnName> {
    match node.kind() {
        Kind::NAME_REF => Some(ColumnName { qualifier: None, name: name_of(node) }),
        Kind::FIELD_EXPR => {
            let mut parts = node.children().map(|part| column(&part));
            match (parts.next(), parts.next(), parts.next()) {
                (Some(Some(first)), Some(Some(second)), None) if first.qualifier.is_none() => {
                    Some(ColumnName { qualifier: Some(first.name), name: second.name })
                }
                _ => None,
            }
        }
        Kind::PAREN_EXPR | Kind::CAST_EXPR => column(&node.first_child()?),
        Kind::COLUMN => column(&node.first_child()?),
        _ => None,
    }
}

/// Operator of a binary expression, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    Greater,
    Compares,
    Adds,
    And,
    Other,
}

fn operator(node: &SyntaxNode) -> Operator {
    // Between the two sides: tokens, or a node of several.
    let begin = node.first_child().map(|left| left.text_range().end());
    let end = node.last_child().map(|right| right.text_range().start());
    let (Some(begin), Some(end)) = (begin, end) else { return Operator::Other };
    let from = node.text_range().start();
    let text = node.text().slice(begin - from..end.max(begin) - from).to_string();
    let words = text.to_ascii_lowercase();
    match words.split_whitespace().collect::<Vec<_>>().join(" ").as_str() {
        "<" | "<=" => Operator::Less,
        ">" | ">=" => Operator::Greater,
        "="
        | "<>"
        | "!="
        | "like"
        | "ilike"
        | "not like"
        | "not ilike"
        | "~~"
        | "~~*"
        | "in"
        | "not in"
        | "is distinct from"
        | "is not distinct from" => Operator::Compares,
        "+" | "-" => Operator::Adds,
        "and" => Operator::And,
        _ => Operator::Other,
    }
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Less | Operator::Greater | Operator::Compares)
}

/// Returns the places of the parameters of `statement` that are recognised.
pub(crate) fn places(statement: &SyntaxNode) -> BTreeMap<u32, Place> {
    let mut places = BTreeMap::new();
    for node in statement.descendants().filter(|node| node.kind() == Kind::LITERAL) {
        let Some(number) = parameter(&node) else { continue };
        if let Some(place) = place(&node) {
            places.entry(number).or_insert(place);
        }
    }
    add_ranges(statement, &mut places);
    places
}

/// Returns the place of the parameter, or of the expression with it, that `node` is.
fn place(node: &SyntaxNode) -> Option<Place> {
    let parent = node.parent()?;
    let at = parent.children().position(|child| child == *node)?;
    match parent.kind() {
        Kind::PAREN_EXPR if is_shortened(&parent) => match place(&parent)? {
            Place::Compared(column) => Some(Place::FirstOf(column)),
            other => Some(other),
        },
        Kind::PAREN_EXPR | Kind::CAST_EXPR => place(&parent),
        Kind::BIN_EXPR => in_binary(node, &parent),
        Kind::BETWEEN_EXPR => {
            let sides: Vec<SyntaxNode> = parent.children().collect();
            let of = column(sides.first()?)?;
            match (at, first_parameter(sides.get(1)?)) {
                (1, _) => Some(Place::Compared(of)),
                (2, Some(begin)) => Some(Place::RangeEnd(of, begin)),
                _ => None,
            }
        }
        Kind::TUPLE_EXPR => in_tuple(&parent, at),
        Kind::ANY_FN => equal_to_any(&parent).map(Place::AnyOf),
        Kind::ARRAY_EXPR if is_shortened(&parent) => equal_to_any(&parent).map(Place::FirstOf),
        Kind::ARRAY_EXPR => equal_to_any(&parent).map(Place::Compared),
        Kind::ROW => inserted(&parent, at),
        Kind::TARGET => {
            let list = parent.parent()?;
            let at = list.children().position(|child| child == parent)?;
            let select = list.ancestors().find(|above| above.kind() == Kind::SELECT)?;
            match select.parent().is_some_and(|above| above.kind() == Kind::INSERT) {
                true => inserted(&select, at),
                false => Some(Place::Output),
            }
        }
        Kind::SET_EXPR => assigned(&parent),
        Kind::WHEN_CLAUSE if at == 0 => None,
        Kind::WHEN_CLAUSE => place(&parent.parent()?.parent()?),
        Kind::ELSE_CLAUSE => place(&parent.parent()?),
        Kind::ARG_LIST => {
            let call = parent.parent()?;
            let name = call.first_child().map(|name| name_of(&name)).unwrap_or_default();
            let is_same_value =
                ["coalesce", "nullif", "greatest", "least"].contains(&name.as_str());
            if is_same_value { place(&call) } else { None }
        }
        Kind::LIMIT_CLAUSE | Kind::FETCH_CLAUSE => Some(Place::Limit),
        Kind::OFFSET_CLAUSE => Some(Place::Offset),
        _ => None,
    }
}

/// Whether `pg_stat_statements` left elements of `list` out.
fn is_shortened(list: &SyntaxNode) -> bool {
    let tokens = list.children_with_tokens().filter_map(|part| part.as_token().cloned());
    tokens.filter(|token| token.kind() == Kind::COMMENT).any(|token| token.text() == "/*, ... */")
}

fn in_binary(node: &SyntaxNode, parent: &SyntaxNode) -> Option<Place> {
    let other = parent.children().find(|child| child != node)?;
    match operator(parent) {
        operator if is_comparison(operator) => column(&other).map(Place::Compared),
        Operator::Adds => {
            let is_first = parent.first_child().as_ref() == Some(node);
            match column(&other) {
                Some(column) => (!is_first).then_some(Place::Added(column)),
                // `$1 - $2`: the first is compared or assigned, the second is a distance.
                None if is_first => place(parent),
                None => parameter(&other).map(|_| Place::Distance),
            }
        }
        _ => None,
    }
}

/// Returns the place of element `at` of `tuple`: in `a IN ($1, $2)` or `(a, b) = ($1, $2)`.
fn in_tuple(tuple: &SyntaxNode, at: usize) -> Option<Place> {
    let parent = tuple.parent()?;
    if parent.kind() != Kind::BIN_EXPR || !is_comparison(operator(&parent)) {
        return None;
    }
    let other = parent.children().find(|child| child != tuple)?;
    match other.kind() {
        Kind::TUPLE_EXPR => column(&other.children().nth(at)?).map(Place::Compared),
        _ => column(&other).map(Place::Compared),
    }
}

/// Returns the column that is compared with any element of the array that `node` is.
fn equal_to_any(node: &SyntaxNode) -> Option<ColumnName> {
    let is_around = |above: &SyntaxNode| {
        matches!(
            above.kind(),
            Kind::ARRAY_EXPR
                | Kind::PAREN_EXPR
                | Kind::CAST_EXPR
                | Kind::SLICE_EXPR
                | Kind::ANY_FN
                | Kind::CALL_EXPR
        )
    };
    let around: Vec<SyntaxNode> = node.ancestors().take_while(is_around).collect();
    let outermost = around.last()?;
    let comparison = outermost.parent().filter(|above| above.kind() == Kind::BIN_EXPR)?;
    let is_any = around.iter().any(|above| above.kind() == Kind::ANY_FN);
    let other = comparison.children().find(|child| child != outermost)?;
    if is_any && is_comparison(operator(&comparison)) { column(&other) } else { None }
}

/// Returns the place of item `at` of `row`: a row of VALUES, or the SELECT, of an INSERT.
fn inserted(row: &SyntaxNode, at: usize) -> Option<Place> {
    let insert = row.ancestors().find(|above| above.kind() == Kind::INSERT)?;
    let part = |kind| insert.children().find(|part| part.kind() == kind);
    let names = part(Kind::PATH)?.descendants().filter(|part| part.kind() == Kind::NAME_REF);
    let table = name_of(&names.last()?);
    Some(match part(Kind::COLUMN_LIST) {
        Some(list) => {
            let column = column(&list.children().nth(at)?)?;
            Place::Inserted(ColumnName { qualifier: Some(table), name: column.name })
        }
        None => Place::InsertedAt(table, at),
    })
}

/// Returns the place of `expression` of a SET clause.
fn assigned(expression: &SyntaxNode) -> Option<Place> {
    let parent = expression.parent()?;
    if parent.kind() == Kind::SET_SINGLE_COLUMN {
        return column(&parent.first_child()?).map(Place::Assigned);
    }
    let at = parent.children().position(|child| child == *expression)?;
    let columns = parent.parent()?.children().find(|part| part.kind() == Kind::COLUMN_LIST)?;
    column(&columns.children().nth(at)?).map(Place::Assigned)
}

/// Bound of a column in a chain of ANDs.
struct Bound {
    chain: SyntaxNode,
    column: ColumnName,
    is_upper: bool,
    parameter: u32,
    /// Whether another parameter is added to it, or taken from it.
    has_distance: bool,
}

/// Finds pairs of bounds: `a >= $1 AND a < $2`.
fn add_ranges(statement: &SyntaxNode, places: &mut BTreeMap<u32, Place>) {
    let comparisons = statement.descendants().filter(|node| node.kind() == Kind::BIN_EXPR);
    let bounds: Vec<Bound> = comparisons.filter_map(|node| bound(&node)).collect();
    for upper in bounds.iter().filter(|bound| bound.is_upper) {
        let is_lower = |lower: &&Bound| {
            !lower.is_upper && lower.column == upper.column && lower.chain == upper.chain
        };
        let Some(lower) = bounds.iter().find(is_lower) else { continue };
        let place = match (lower.has_distance, upper.has_distance) {
            (true, false) => {
                places.insert(lower.parameter, Place::Same(upper.parameter));
                continue;
            }
            (false, true) => Place::Same(lower.parameter),
            _ => Place::RangeEnd(upper.column.clone(), lower.parameter),
        };
        places.insert(upper.parameter, place);
    }
}

fn bound(node: &SyntaxNode) -> Option<Bound> {
    let operator = operator(node);
    if !matches!(operator, Operator::Less | Operator::Greater) {
        return None;
    }
    let (left, right) = (node.first_child()?, node.last_child()?);
    let (column, value, is_upper) = match column(&left) {
        Some(column) => (column, right, operator == Operator::Less),
        None => (self::column(&right)?, left, operator == Operator::Greater),
    };
    let is_chain = |above: &SyntaxNode| {
        matches!(above.kind(), Kind::PAREN_EXPR)
            || above.kind() == Kind::BIN_EXPR && self::operator(above) == Operator::And
    };
    let chain = node.ancestors().skip(1).take_while(is_chain).last()?;
    let has_distance = parameter(&value).is_none();
    Some(Bound { chain, column, is_upper, parameter: first_parameter(&value)?, has_distance })
}
