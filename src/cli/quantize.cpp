// plimsoll quantize: a model directory with linear layers in 4 or 8 bits.
#include <fmt/format.h>

#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/tree.h"
#include "model_tools/quantize_model.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kQuantizeFooter =
    R"(The linear layers become codes and scales, with the rounding and layout of bitsandbytes, so that transformers
opens the result; embeddings, head, norms and biases are unchanged. int8 has a scale per row and no outlier columns.

examples:
  plimsoll quantize --model DIR --format nf4 --output model-nf4
  plimsoll quantize --model DIR --format nf4 --double-quant false --output model-nf4
  plimsoll quantize --model DIR --format int8 --output model-int8
exit codes: 0 done, 2 usage, 65 model files, 74 I/O)";

struct QuantizeArguments {
  model_tools::QuantizeRequest request;
  std::string format;
  std::string double_quant = "true";
  bool json = false;
};

Status read_choices(QuantizeArguments& a) {
  if (a.format == "nf4")
    a.request.format = checkpoints::QuantizedFormat::kNf4;
  else if (a.format == "fp4")
    a.request.format = checkpoints::QuantizedFormat::kFp4;
  else if (a.format == "int8")
    a.request.format = checkpoints::QuantizedFormat::kInt8Rows;
  else
    return Error{ErrorCode::kInvalidArgument, "no such format", a.format, "one of nf4, fp4, int8"};
  if (a.double_quant != "true" && a.double_quant != "false")
    return Error{ErrorCode::kInvalidArgument, "--double-quant is true or false", a.double_quant,
                 "leave its value out: true"};
  a.request.double_quant = a.double_quant == "true";
  return Ok{};
}

void print_report(const QuantizeArguments& a, const model_tools::QuantizeReport& report) {
  Table table({{"", Table::Align::kLeft}, {"", Table::Align::kRight}});
  table.add({"tensors", fmt::format("{}, {} of them quantized", report.num_tensors, report.num_quantized)});
  table.add({"before", to_string(Bytes(report.bytes_before))});
  table.add({"after", to_string(Bytes(report.bytes))});
  table.add(
      {"largest rounding error", fmt::format("{:.3g}, in {}", report.largest_error, report.largest_in)});
  print_text(fmt::format("{}: {} in {:.2f} s\n{}", a.request.output, a.format, report.seconds, table.text()));
}

Status run_quantize(QuantizeArguments& a) {
  PLIMSOLL_TRY(read_choices(a));
  a.request.num_threads = num_available_cpus();
  PLIMSOLL_ASSIGN(const model_tools::QuantizeReport report, model_tools::quantize_model(a.request));
  if (!a.json) {
    print_report(a, report);
    return Ok{};
  }
  fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("quantize"))},
                                                {"path", io::Tree::of(a.request.output)},
                                                {"format", io::Tree::of(a.format)},
                                                {"tensors", io::Tree::of(report.num_tensors)},
                                                {"quantized", io::Tree::of(report.num_quantized)},
                                                {"bytes_before", io::Tree::of(report.bytes_before)},
                                                {"bytes", io::Tree::of(report.bytes)},
                                                {"largest_error", io::Tree::of(report.largest_error)},
                                                {"largest_in", io::Tree::of(report.largest_in)},
                                                {"seconds", io::Tree::of(report.seconds)}})));
  return Ok{};
}

}  // namespace

Command add_quantize(Parser app) {
  const auto declare = [](Parser c, QuantizeArguments& a) {
    c.add_option("--model", a.request.model, "a model directory, or a Hub id that is already cached")
        .required()
        .type_name("DIR|ID");
    c.add_option("--format", a.format,
                 "4 bits in blocks of 64 (nf4, fp4), or 8 bits with a scale per row (int8)")
        .required()
        .type_name("nf4|fp4|int8");
    c.add_optional_value("--double-quant", a.double_quant, "4 bits: quantize the block scales, too (true)")
        .type_name("true|false");
    c.add_option("--skip-modules", a.request.skip_modules,
                 "linear layer that is not quantized, by name or end of name; may be given several times")
        .type_name("NAME")
        .repeatable();
    c.add_option("--output", a.request.output, "the folder to create").required().type_name("DIR");
    c.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
    c.footer(kQuantizeFooter);
  };
  return add_command<QuantizeArguments>(
      app, "quantize", "quantize the linear layers of a model to 4 or 8 bits", declare, run_quantize);
}

}  // namespace plimsoll::cli
