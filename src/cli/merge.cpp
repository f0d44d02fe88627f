// plimsoll merge: a model and adapters of it as one model.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "io/tree.h"
#include "model_tools/merge_adapter.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kMergeFooter =
    R"(Each adapted matrix becomes W + scale B A in its stored dtype; files and names stay those of the model. Some
rows of every changed matrix are read back and checked against model and adapters before the finished folder is
renamed to the name given. A model in 4 or 8 bits is dequantized.

examples:
  plimsoll merge --model DIR --adapter runs/lora/final --output merged
  plimsoll merge --model DIR --adapter A:0.7 --adapter B:0.3 --output both
exit codes: 0 done, 2 usage, 65 model or adapter files, 74 I/O)";

struct MergeArguments {
  model_tools::MergeRequest request;
  std::vector<std::string> adapters;
  bool json = false;
};

/// "DIR" or "DIR:0.7".
std::pair<std::string, double> adapter_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return {text, 1.0};
  char* end = nullptr;
  const double weight = std::strtod(text.c_str() + colon + 1, &end);
  if (*end != '\0' || !std::isfinite(weight)) return {text, 1.0};
  return {text.substr(0, colon), weight};
}

Status run_merge(MergeArguments& a) {
  a.request.num_threads = num_available_cpus();
  for (const std::string& text : a.adapters) a.request.adapters.push_back(adapter_of(text));
  PLIMSOLL_ASSIGN(const model_tools::MergeReport report, model_tools::merge_adapters(a.request));
  for (const std::string& text : report.notes) print_message("note: " + text);
  if (a.json) {
    fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("merge"))},
                                                  {"path", io::Tree::of(a.request.output)},
                                                  {"tensors", io::Tree::of(report.num_tensors)},
                                                  {"changed", io::Tree::of(report.num_changed)},
                                                  {"dequantized", io::Tree::of(report.num_dequantized)},
                                                  {"proven_rows", io::Tree::of(report.num_proven)},
                                                  {"bytes", io::Tree::of(report.bytes)},
                                                  {"seconds", io::Tree::of(report.seconds)}})));
    return Ok{};
  }
  std::string changed = fmt::format("{} of them changed", report.num_changed);
  if (report.num_dequantized > 0)
    changed += fmt::format(", {} dequantized from {}", report.num_dequantized, report.dequantized_from);
  print_text(fmt::format("{}: {} tensors, {}, {} rows verified, {} in {:.2f} s\n", a.request.output,
                         report.num_tensors, changed, report.num_proven, to_string(Bytes(report.bytes)),
                         report.seconds));
  return Ok{};
}

}  // namespace

Command add_merge(Parser app) {
  const auto declare = [](Parser c, MergeArguments& a) {
    c.add_option("--model", a.request.model,
                 "the base: a model directory, or a Hub id that is already cached")
        .required()
        .type_name("DIR|ID");
    c.add_option("--adapter", a.adapters,
                 "LoRA adapter (a PEFT directory) with a weight (1); may be given several times")
        .required()
        .type_name("DIR[:W]")
        .repeatable();
    c.add_option("--output", a.request.output, "the folder to create").required().type_name("DIR");
    c.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
    c.footer(kMergeFooter);
  };
  return add_command<MergeArguments>(app, "merge", "merge adapters into a model", declare, run_merge);
}

}  // namespace plimsoll::cli
