// plimsoll add-tokens: writes a model directory with additional tokens.
#include "model_tools/add_tokens.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "io/tree.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kAddTokensFooter =
    R"(Embedding and head get a row for each new token: the mean of the existing rows, as in resize_token_embeddings of
transformers. Train the new rows afterwards: with all weights, or with an adapter and
lora.modules_to_save=[embed_tokens,lm_head] or lora.trainable_token_indices.

examples:
  plimsoll add-tokens --model DIR --special-token "<|tool|>" --special-token "<|end|>" --output model-tools
  plimsoll add-tokens --model DIR --token plimsoll --multiple-of 64 --output model-words
  plimsoll add-tokens --model DIR --tokenizer DIR2 --output model-tokenizer      rows for another tokenizer
exit codes: 0 done, 2 usage, 65 model files, 74 I/O)";

struct AddTokensArguments {
  model_tools::AddTokensRequest request;
  bool json = false;
};

Status run_add_tokens(AddTokensArguments& a) {
  PLIMSOLL_ASSIGN(const model_tools::AddTokensReport report, model_tools::add_tokens(a.request));
  if (!a.json) {
    print_text(fmt::format("{}: {} tokens, {} of them added; embedding and head have {} rows, {} before\n",
                           a.request.output, report.num_tokens, report.num_added, report.rows,
                           report.rows_before));
    return Ok{};
  }
  fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("add-tokens"))},
                                                {"path", io::Tree::of(a.request.output)},
                                                {"tokens", io::Tree::of(report.num_tokens)},
                                                {"added", io::Tree::of(report.num_added)},
                                                {"rows_before", io::Tree::of(report.rows_before)},
                                                {"rows", io::Tree::of(report.rows)},
                                                {"seconds", io::Tree::of(report.seconds)}})));
  return Ok{};
}

}  // namespace

Command add_add_tokens(Parser app) {
  const auto declare = [](Parser c, AddTokensArguments& a) {
    c.add_option("--model", a.request.model, "a model directory, or a Hub id that is already cached")
        .required()
        .type_name("DIR|ID");
    c.add_option("--token", a.request.tokens, "text that becomes one token; may be given several times")
        .type_name("TEXT")
        .repeatable();
    c.add_option("--special-token", a.request.special_tokens,
                 "text of a special token, as chat templates use it; may be given several times")
        .type_name("TEXT")
        .repeatable();
    c.add_option("--tokenizer", a.request.tokenizer, "a folder whose tokenizer replaces the model's")
        .type_name("DIR");
    c.add_option("--multiple-of", a.request.multiple_of, "round the number of rows up (1)").type_name("N");
    c.add_option("--output", a.request.output, "the folder to create").required().type_name("DIR");
    c.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
    c.footer(kAddTokensFooter);
  };
  return add_command<AddTokensArguments>(app, "add-tokens", "add tokens to a model and its tokenizer",
                                         declare, run_add_tokens);
}

}  // namespace plimsoll::cli
