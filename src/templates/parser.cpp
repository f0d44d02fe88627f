// The statements of a template.
#include "templates/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "templates/lexer.h"
#include "templates/parse_expr.h"
#include "templates/refused.h"
#include "templates/scopes.h"

namespace plimsoll::templates {
namespace {

constexpr int kMaxStatements = 60;  // of statements in statements

using Words = std::initializer_list<std::string_view>;

std::string joined(Words words) {
  std::string text;
  for (const std::string_view word : words)
    text += fmt::format("{}{{% {} %}}", text.empty() ? "" : " or ", word);
  return text;
}

class Parser {
 public:
  Parser(const std::vector<Token>& tokens, Program& program) : expr_(tokens, program), program_(program) {}
  Status run() {
    if (!body(program_.body, {})) return expr_.error();
    return Ok{};
  }

 private:
  /// Statements up to a tag that starts with one of `ends`, whose name is next then; to the template's end
  /// where there are none.
  bool body(Body& out, Words ends);
  /// The rest of a tag, the statements, and the tag that ends them, whose name is taken.
  bool block(Body& out, Words ends);
  bool closed_block(Body& out, std::string_view end) { return block(out, {end}) && take_end(); }
  bool take_end() { return expr_.take().kind == TokenKind::kName; }

  bool statement(Body& out);
  bool if_statement(Stmt& stmt);
  bool for_statement(Stmt& stmt);
  bool set_statement(Stmt& stmt);
  bool macro_statement(Stmt& stmt);
  bool call_statement(Stmt& stmt);
  bool filter_statement(Stmt& stmt);
  bool signature(Stmt& stmt);
  bool inner_function(Stmt& stmt, std::string_view end);

  Stmt* make(StmtKind kind, int line) {
    Stmt& stmt = program_.stmts.emplace_back();
    stmt.kind = kind;
    stmt.line = line;
    return &stmt;
  }

  ExprParser expr_;
  Program& program_;
  int depth_ = 0;
  int loops_ = 0;  // around this place, in the same macro
};

bool Parser::body(Body& out, Words ends) {
  const int begin_line = expr_.now().line;
  while (true) {
    const Token& token = expr_.now();
    switch (token.kind) {
      case TokenKind::kEnd:
        if (ends.size() == 0) return true;
        return expr_.fail(fmt::format("the template ends before {}", joined(ends)), begin_line);
      case TokenKind::kData: {
        Stmt* text = make(StmtKind::kText, token.line);
        text->text = expr_.take().text;
        out.push_back(text);
        break;
      }
      case TokenKind::kPrintBegin: {
        expr_.take();
        Stmt* print = make(StmtKind::kPrint, token.line);
        print->expr = expr_.tuple(true);
        if (print->expr == nullptr || !expr_.expect(TokenKind::kPrintEnd, "'}}'")) return false;
        out.push_back(print);
        break;
      }
      default:
        if (!expr_.expect(TokenKind::kBlockBegin, "a tag")) return false;
        if (std::any_of(ends.begin(), ends.end(), [this](auto end) { return expr_.now().is_name(end); }))
          return true;
        if (!statement(out)) return false;
    }
  }
}

bool Parser::block(Body& out, Words ends) {
  expr_.take_op(":");
  return expr_.expect(TokenKind::kBlockEnd, "'%}'") && body(out, ends);
}

bool Parser::statement(Body& out) {
  const Token& tag = expr_.now();
  if (tag.kind != TokenKind::kName) return expr_.fail("a tag without a name");
  if (++depth_ > kMaxStatements) return expr_.fail("tags nested too deep");
  expr_.take();
  const auto parse = [&](StmtKind kind, auto rest) {
    Stmt* stmt = make(kind, tag.line);
    out.push_back(stmt);
    return (this->*rest)(*stmt);
  };
  bool ok = false;
  if (tag.text == "if") {
    ok = parse(StmtKind::kIf, &Parser::if_statement);
  } else if (tag.text == "for") {
    ok = parse(StmtKind::kFor, &Parser::for_statement);
  } else if (tag.text == "set") {
    ok = parse(StmtKind::kSet, &Parser::set_statement);
  } else if (tag.text == "macro") {
    ok = parse(StmtKind::kMacro, &Parser::macro_statement);
  } else if (tag.text == "call") {
    ok = parse(StmtKind::kCallBlock, &Parser::call_statement);
  } else if (tag.text == "filter") {
    ok = parse(StmtKind::kFilterBlock, &Parser::filter_statement);
  } else if (tag.text == "generation") {
    program_.has_generation = true;
    Stmt* stmt = make(StmtKind::kGeneration, tag.line);
    out.push_back(stmt);
    ok = inner_function(*stmt, "endgeneration");
  } else if (tag.text == "break" || tag.text == "continue") {
    if (loops_ == 0) return expr_.fail(fmt::format("{{% {} %}} outside of a loop", tag.text), tag.line);
    out.push_back(make(tag.text == "break" ? StmtKind::kBreak : StmtKind::kContinue, tag.line));
    ok = true;
  } else {
    return expr_.fail(no_construct(Construct::kTag, tag.text), tag.line);
  }
  --depth_;
  return ok && expr_.expect(TokenKind::kBlockEnd, "'%}'");
}

bool Parser::if_statement(Stmt& stmt) {
  Stmt* branch = &stmt;
  while (true) {
    branch->expr = expr_.tuple(false);
    if (branch->expr == nullptr || !block(branch->body, {"elif", "else", "endif"})) return false;
    const Token& end = expr_.take();
    if (end.text == "endif") return true;
    if (end.text == "else") return closed_block(stmt.orelse, "endif");
    branch = make(StmtKind::kIf, end.line);
    stmt.branches.push_back(branch);
  }
}

bool Parser::for_statement(Stmt& stmt) {
  expr_.set_in_loop(true);
  if (!expr_.loop_target(stmt.target)) return false;
  if (!expr_.take_name("in")) return expr_.fail("expected 'in' after the name of a {% for %}");
  stmt.expr = expr_.tuple(false);
  if (stmt.expr == nullptr) return false;
  if (expr_.take_name("if") && (stmt.condition = expr_.expression()) == nullptr) return false;
  if (expr_.now().is_name("recursive"))
    return expr_.fail("a recursive loop is not supported: templates of public models do without it");
  ++loops_;
  const bool ok = block(stmt.body, {"endfor", "else"});
  --loops_;
  expr_.set_in_loop(loops_ > 0);
  if (!ok) return false;
  if (expr_.take().text == "endfor") return true;
  return closed_block(stmt.orelse, "endfor");
}

bool Parser::set_statement(Stmt& stmt) {
  if (!expr_.set_target(stmt.target)) return false;
  if (expr_.take_op("=")) {
    stmt.expr = expr_.tuple(true);
    return stmt.expr != nullptr;
  }
  stmt.kind = StmtKind::kSetBlock;
  if (expr_.now().is("|"))
    return expr_.fail("a {% set %} block with filters is not supported: put them where it is used");
  return closed_block(stmt.body, "endset");
}

/// "(a, b=1)".
bool Parser::signature(Stmt& stmt) {
  if (!expr_.expect_op("(")) return false;
  while (!expr_.now().is(")")) {
    if (!stmt.parameters.empty() && !expr_.expect_op(",")) return false;
    if (expr_.now().is(")")) break;
    Expr* name = expr_.make(ExprKind::kName, expr_.now().line);
    if (!expr_.expect_identifier(name->name)) return false;
    if (expr_.take_op("=")) {
      Expr* value = expr_.expression();
      if (value == nullptr) return false;
      stmt.defaults.push_back(value);
    } else if (!stmt.defaults.empty()) {
      return expr_.fail("a parameter without a default after one that has it");
    }
    stmt.parameters.push_back(name);
  }
  return expr_.expect_op(")");
}

/// A body that is a function of its own: loops around it cannot be left from inside.
bool Parser::inner_function(Stmt& stmt, std::string_view end) {
  const int around = std::exchange(loops_, 0);
  const bool ok = closed_block(stmt.body, end);
  loops_ = around;
  return ok;
}

bool Parser::macro_statement(Stmt& stmt) {
  return expr_.expect_identifier(stmt.name) && signature(stmt) && inner_function(stmt, "endmacro");
}

bool Parser::call_statement(Stmt& stmt) {
  stmt.name = "caller";
  if (expr_.now().is("("))
    return expr_.fail(
        "a {% call %} with parameters is not supported: templates of public models do without it");
  stmt.expr = expr_.expression();
  if (stmt.expr == nullptr) return false;
  if (stmt.expr->kind != ExprKind::kCall) return expr_.fail("expected a call in {% call %}");
  return inner_function(stmt, "endcall");
}

bool Parser::filter_statement(Stmt& stmt) {
  stmt.expr = expr_.filters_from_name();
  return stmt.expr != nullptr && closed_block(stmt.body, "endfilter");
}

}  // namespace

Result<std::unique_ptr<Program>> compile(std::string_view text) {
  auto program = std::make_unique<Program>();
  program->text = normalized_source(text);
  PLIMSOLL_ASSIGN(const std::vector<Token> tokens, tokenize(program->text, program->texts));
  PLIMSOLL_TRY(Parser(tokens, *program).run());
  PLIMSOLL_TRY(resolve_names(*program));
  return program;
}

}  // namespace plimsoll::templates
