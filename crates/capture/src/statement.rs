//! Statements of `pg_stat_statements`: the tables that they name, and where their parameters stand.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use squawk_syntax::{SourceFile, SyntaxKind as Kind, SyntaxNode, SyntaxToken};

use crate::document::Reason;
use crate::place::{ColumnName, Place, name_of, places};

/// Relation that a statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    pub(crate) alias: Option<String>,
    /// Part of the text that knows its columns.
    scope: Range<u32>,
}

/// Piece of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Parameter(u32),
}

/// Statement that reads or changes rows.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pieces: Vec<Piece>,
    pub(crate) relations: Vec<Relation>,
    /// All parameters, with where each stands first.
    pub(crate) parameters: BTreeMap<u32, u32>,
    /// Places of the parameters that are recognised.
    pub(crate) places: BTreeMap<u32, Place>,
    /// Functions that it calls.
    pub(crate) functions: BTreeSet<String>,
    /// Whether an INSERT says what happens to rows that are there.
    pub(crate) has_conflict_clause: bool,
}

/// Parses `sql`.
///
/// # Errors
/// The statement is no single one of rows, cannot be understood, or holds values:
/// `pg_stat_statements` leaves them in the text where the statement left its table before it ended.
pub(crate) fn parse(sql: &str) -> Result<Statement, Reason> {
    let parsed = SourceFile::parse(&with_casts(sql));
    let root = parsed.syntax_node();
    let statements: Vec<SyntaxNode> = root.children().collect();
    let Some(statement) = statements.first().filter(|first| first.kind() != Kind::ERROR) else {
        return Err(Reason::NotUnderstood);
    };
    let is_of_rows = matches!(
        statement.kind(),
        Kind::SELECT
            | Kind::COMPOUND_SELECT
            | Kind::PAREN_SELECT
            | Kind::INSERT
            | Kind::UPDATE
            | Kind::DELETE
            | Kind::MERGE
    );
    if !is_of_rows {
        return Err(Reason::Utility);
    }
    if statements.len() > 1 {
        return Err(Reason::NotUnderstood);
    }
    // Scripts would read a variable in `"a:b"`.
    let is_variable =
        |token: &SyntaxToken| token.kind() == Kind::IDENT && token.text().contains(':');
    if !parsed.errors().is_empty() || tokens(statement).any(|token| is_variable(&token)) {
        return Err(Reason::NotUnderstood);
    }
    if statement.descendants().any(|node| is_value(&node)) {
        return Err(Reason::HoldsValues);
    }
    let mut parameters = BTreeMap::new();
    for token in tokens(statement).filter(|token| token.kind() == Kind::POSITIONAL_PARAM) {
        parameters.entry(number(&token)).or_insert(token.text_range().start().into());
    }
    Ok(Statement {
        parameters,
        relations: relations(statement),
        places: places(statement),
        functions: functions(statement),
        has_conflict_clause: statement
            .descendants()
            .any(|node| node.kind() == Kind::ON_CONFLICT_CLAUSE),
        pieces: pieces(statement),
    })
}

/// Returns `sql` with a cast for each value behind its type: `interval '1 day'` is `interval $1` in
/// the statistics, which PostgreSQL does not accept.
fn with_casts(sql: &str) -> String {
    let root = SourceFile::parse(sql).syntax_node();
    let mut text = String::new();
    // The last word, and where it begins.
    let mut last = (String::new(), 0);
    for token in tokens(&root) {
        let is_value =
            token.kind() == Kind::POSITIONAL_PARAM && BEFORE_VALUES.contains(&last.0.as_str());
        if is_value {
            text.truncate(last.1);
            text += &format!("{}::{}", token.text(), last.0);
            continue;
        }
        if !matches!(token.kind(), Kind::WHITESPACE | Kind::COMMENT) {
            last = (token.text().to_ascii_lowercase(), text.len());
        }
        text += token.text();
    }
    text
}

/// Types that stand before a value.
const BEFORE_VALUES: [&str; 5] = ["date", "interval", "time", "timestamp", "timestamptz"];

impl Statement {
    /// Returns the text without comments, on one line.
    pub(crate) fn text(&self) -> String {
        self.rewritten(&BTreeMap::new())
    }

    /// Returns the text with SQL in place of parameters.
    pub(crate) fn rewritten(&self, replacements: &BTreeMap<u32, String>) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text += piece,
                Piece::Parameter(number) => {
                    // A negative number would begin a comment.
                    if text.ends_with('-') {
                        text.push(' ');
                    }
                    match replacements.get(number) {
                        Some(sql) => text += sql,
                        None => text += &format!("${number}"),
                    }
                }
            }
        }
        text
    }

    /// Returns the relations that may have the `column` that belongs to `parameter`: those that its
    /// qualifier names, those of the innermost query around it first.
    pub(crate) fn relations_of(&self, column: &ColumnName, parameter: u32) -> Vec<&Relation> {
        let at = self.parameters.get(&parameter).copied().unwrap_or_default();
        let is_named = |relation: &&Relation| {
            let known_as = relation.alias.as_ref().unwrap_or(&relation.name);
            column.qualifier.as_ref().is_none_or(|qualifier| qualifier == known_as)
        };
        let mut relations: Vec<&Relation> = self.relations.iter().filter(is_named).collect();
        // Those beyond are behind common tables and sub-selects.
        relations.sort_by_key(|relation| match relation.scope.contains(&at) {
            true => relation.scope.len(),
            false => usize::MAX,
        });
        relations
    }
}

fn tokens(statement: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> {
    statement.descendants_with_tokens().filter_map(|element| element.as_token().cloned())
}

/// Returns the number of the parameter that `token` is.
fn number(token: &SyntaxToken) -> u32 {
    token.text()[1..].parse().unwrap_or(u32::MAX)
}

/// Cuts `statement` at its parameters. Blanks and comments become one blank.
fn pieces(statement: &SyntaxNode) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    for token in tokens(statement) {
        match token.kind() {
            Kind::WHITESPACE | Kind::COMMENT if text.ends_with(' ') => {}
            Kind::WHITESPACE | Kind::COMMENT => text.push(' '),
            Kind::POSITIONAL_PARAM => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Parameter(number(&token)));
            }
            // Of a slice: scripts would read a variable behind it.
            Kind::COLON if token.parent().is_some_and(|node| node.kind() != Kind::COLON_COLON) => {
                text += ": ";
            }
            _ => text += token.text(),
        }
    }
    pieces.push(Piece::Text(text.trim_end().to_owned()));
    pieces
}

/// Whether `node` is a value: no parameter, no number of an output column, no size of a type.
fn is_value(node: &SyntaxNode) -> bool {
    let is_in = |kinds: &[Kind]| node.ancestors().any(|above| kinds.contains(&above.kind()));
    node.kind() == Kind::LITERAL
        && node.children_with_tokens().any(|part| match part.kind() {
            Kind::INT_NUMBER => {
                !is_in(&[Kind::PATH_TYPE, Kind::GROUPING_EXPR])
                    && node.parent().is_none_or(|parent| parent.kind() != Kind::SORT_BY)
            }
            kind => matches!(
                kind,
                Kind::FLOAT_NUMBER
                    | Kind::STRING
                    | Kind::ESC_STRING
                    | Kind::BIT_STRING
                    | Kind::BYTE_STRING
                    | Kind::UNICODE_ESC_STRING
                    | Kind::DOLLAR_QUOTED_STRING
            ),
        })
}

/// Returns the relations that `statement` names. Common tables are none.
fn relations(statement: &SyntaxNode) -> Vec<Relation> {
    let mut found: Vec<Relation> = Vec::new();
    let mut commons = Vec::new();
    for node in statement.descendants() {
        let named = match node.kind() {
            Kind::WITH_TABLE => {
                commons.extend(child(&node, Kind::NAME).as_ref().map(name_of));
                continue;
            }
            Kind::FROM_ITEM => node
                .children()
                .find(|part| matches!(part.kind(), Kind::NAME_REF | Kind::FIELD_EXPR)),
            Kind::INSERT | Kind::MERGE => child(&node, Kind::PATH),
            Kind::UPDATE | Kind::DELETE => child(&node, Kind::RELATION_NAME),
            _ => continue,
        };
        let Some(named) = named else { continue };
        let mut names = names(&named);
        let Some(name) = names.pop() else { continue };
        let alias = child(&node, Kind::ALIAS).and_then(|alias| child(&alias, Kind::NAME));
        let alias = alias.map(|alias| name_of(&alias));
        found.push(Relation { schema: names.pop(), name, alias, scope: scope(&node) });
    }
    found.retain(|relation| relation.schema.is_some() || !commons.contains(&relation.name));
    found
}

/// Returns the text of the query that `node` belongs to.
fn scope(node: &SyntaxNode) -> Range<u32> {
    let is_query = |above: &SyntaxNode| {
        matches!(
            above.kind(),
            Kind::SELECT | Kind::INSERT | Kind::UPDATE | Kind::DELETE | Kind::MERGE
        )
    };
    let query = node.ancestors().find(is_query);
    let range = query.as_ref().unwrap_or(node).text_range();
    range.start().into()..range.end().into()
}

fn functions(statement: &SyntaxNode) -> BTreeSet<String> {
    let calls = statement.descendants().filter(|node| node.kind() == Kind::CALL_EXPR);
    let called = calls.filter_map(|call| {
        let named = call.first_child()?;
        matches!(named.kind(), Kind::NAME_REF | Kind::FIELD_EXPR).then(|| names(&named))
    });
    called.map(|names| names.join(".")).collect()
}

fn child(node: &SyntaxNode, kind: Kind) -> Option<SyntaxNode> {
    node.children().find(|part| part.kind() == kind)
}

/// Returns the names of `a.b`, in order.
fn names(node: &SyntaxNode) -> Vec<String> {
    let parts = node.descendants().filter(|part| part.kind() == Kind::NAME_REF);
    parts.map(|part| name_of(&part)).collect()
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "workload_statement_tests.rs"]
mod workload_tests;
