//! Parsing meta commands.

use super::error::ScriptError;
use super::parser::{Parser, fold};
use super::token::Tokens;
use super::{Command, Expr, Function, Op, Piece, Store, expr_parser};

const COMMANDS: &str = "meta commands are \\set, \\gset, \\aset, \\if, \\elif, \\else, \\endif, \
    \\sleep, \\shell, \\setshell, \\copyfrom, \\startpipeline, \\syncpipeline and \\endpipeline";

/// Words of a meta command at most.
const MAX_WORDS: usize = 256;

impl Parser<'_> {
    /// Parses the meta command whose backslash stands at `begin`.
    ///
    /// `old` selects the language of pgbench up to 9.5.
    pub(super) fn push_meta(
        &mut self,
        begin: usize,
        end: usize,
        old: bool,
    ) -> Result<(), ScriptError> {
        let place = self.place;
        let mut tokens = Tokens::new(place, begin + 1, end);
        let (_, written) = tokens.word();
        if written.is_empty() {
            return Ok(());
        }
        tokens.command = written;
        let name = written.to_ascii_lowercase();
        let bare = |tokens: &mut Tokens<'_>, op| tokens.end("unexpected argument").map(|()| op);
        let op = match name.as_str() {
            "set" => {
                let variable = self.slot(tokens.argument("\\set name expression")?.1);
                let expression = expr_parser::parse(&mut tokens, &mut |name| self.slot(name))?;
                Op::Set { variable, expression }
            }
            "gset" | "aset" => return self.store(begin, &mut tokens, &name),
            "sleep" => {
                let (amount, unit) = tokens.sleep(&mut |name| self.slot(name))?;
                Op::Sleep { amount, unit }
            }
            "if" => Op::If(expr_parser::parse(&mut tokens, &mut |name| self.slot(name))?),
            "elif" => Op::Elif(expr_parser::parse(&mut tokens, &mut |name| self.slot(name))?),
            "else" => bare(&mut tokens, Op::Else)?,
            "endif" => bare(&mut tokens, Op::Endif)?,
            "copyfrom" => {
                let table = tokens.argument("\\copyfrom table rows")?.1.to_owned();
                let rows = expr_parser::parse(&mut tokens, &mut |name| self.slot(name))?;
                Op::CopyFrom { table, rows }
            }
            "startpipeline" => bare(&mut tokens, Op::StartPipeline)?,
            "syncpipeline" => bare(&mut tokens, Op::SyncPipeline)?,
            "endpipeline" => bare(&mut tokens, Op::EndPipeline)?,
            "shell" => {
                let command = self.words(&mut tokens, MAX_WORDS - 1)?;
                if command.is_empty() {
                    return Err(place.error(begin, written, "").phrased("missing command"));
                }
                Op::Shell(command)
            }
            "setshell" => {
                let variable = self.slot(tokens.argument("\\setshell name command")?.1);
                let command = self.words(&mut tokens, MAX_WORDS - 2)?;
                if command.is_empty() {
                    return Err(place.error(begin, written, "").phrased("missing argument"));
                }
                Op::SetShell { variable, command }
            }
            "setrandom" if old => self.set_random(&mut tokens)?,
            "setrandom" => {
                return Err(place
                    .error(begin, written, "it is of pgbench up to 9.5")
                    .phrased("invalid command")
                    .with_help("write \\set name random(low, high)"));
            }
            _ => {
                let what = format!("there is no meta command `\\{written}`");
                return Err(place
                    .error(begin, written, what)
                    .phrased("invalid command")
                    .with_help(COMMANDS));
            }
        };
        let written = &place.text[begin..end];
        let text = fold(&written.replace("\\\n", " ").replace("\\\r\n", " "));
        let command =
            Command { line: self.line(begin), text, summary: written.trim_end().to_owned(), op };
        self.script.commands.push(command);
        Ok(())
    }

    /// Attaches `\gset` or `\aset` to the SQL command before it.
    fn store(
        &mut self,
        begin: usize,
        tokens: &mut Tokens<'_>,
        name: &str,
    ) -> Result<(), ScriptError> {
        let (_, prefix) = tokens.word();
        tokens.end("too many arguments")?;
        if let Some(Command { op: Op::Sql { store: store @ None, .. }, .. }) =
            self.script.commands.last_mut()
        {
            *store = Some(Store { prefix: prefix.to_owned(), each: name == "aset" });
            return Ok(());
        }
        Err(self.place.error(begin, "", "").phrased("\\gset must follow an SQL command"))
    }

    /// Parses the rest as a command line of at most `most` words, joined by single spaces.
    ///
    /// `:name` is a variable, `::` a colon.
    fn words(&mut self, tokens: &mut Tokens<'_>, most: usize) -> Result<Vec<Piece>, ScriptError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        for count in 1.. {
            let (at, word) = tokens.word();
            if word.is_empty() {
                break;
            }
            if count > most {
                let what = format!("it takes {MAX_WORDS} words, its name among them");
                return Err(tokens.error(at, what).phrased("too many arguments"));
            }
            if !(text.is_empty() && pieces.is_empty()) {
                text.push(' ');
            }
            match word.strip_prefix(':') {
                Some(rest) if rest.starts_with(':') => text.push_str(rest),
                Some(name) => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Variable(self.slot(name)));
                }
                None => text.push_str(word),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(pieces)
    }

    /// Parses `\setrandom name low high [uniform | gaussian parameter | exponential parameter]`.
    fn set_random(&mut self, tokens: &mut Tokens<'_>) -> Result<Op, ScriptError> {
        const HELP: &str =
            "\\setrandom name low high [uniform | gaussian parameter | exponential parameter]";
        let variable = self.slot(tokens.argument(HELP)?.1);
        let mut operand = |tokens: &mut Tokens<'_>| -> Result<Expr, ScriptError> {
            let word = tokens.argument(HELP)?;
            tokens.operand(word, &mut |name| self.slot(name))
        };
        let mut arguments = vec![operand(tokens)?, operand(tokens)?];
        let (at, distribution) = tokens.word();
        let function = match distribution.to_ascii_lowercase().as_str() {
            "" | "uniform" => Function::Random,
            "gaussian" => Function::RandomGaussian,
            "exponential" => Function::RandomExponential,
            _ => {
                let what = format!("`{distribution}` is no distribution");
                return Err(tokens.error(at, what).phrased("invalid argument").with_help(HELP));
            }
        };
        if function != Function::Random {
            arguments.push(operand(tokens)?);
        }
        tokens.end("too many arguments")?;
        Ok(Op::Set { variable, expression: Expr::Call(function, arguments) })
    }
}
