// plimsoll export: a model for other programs.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "gguf/export_model.h"
#include "io/tree.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kExportFooter =
    R"(gguf is llama.cpp's format: one file with weights, tokenizer and chat template. Norms, biases and positions
are always f32; q8_0 falls back to f16 if a row is not a multiple of 32. Families: gpt2, llama, mistral,
qwen2, qwen3, smollm3.

examples:
  plimsoll export --model runs/one/final --format gguf --output one.gguf
  plimsoll export --model DIR --format gguf --dtype q8_0 --output small.gguf
exit codes: 0 done, 2 usage, or a model that the format does not support, 65 model files, 74 I/O)";

struct ExportArguments {
  gguf::ExportRequest request;
  std::string format, dtype;
  bool json = false;
};

Status run_export(ExportArguments& a) {
  using gguf::TensorType;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBf16, TensorType::kQ8_0})
    if (gguf::name(type) == a.dtype) a.request.type = type;
  PLIMSOLL_ASSIGN(const gguf::ExportReport report, gguf::export_model(a.request));
  for (const std::string& note : report.notes) print_message("note: " + note);
  if (a.json) {
    fmt::print("{}\n",
               io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("export"))},
                                          {"path", io::Tree::of(a.request.output)},
                                          {"architecture", io::Tree::of(report.architecture)},
                                          {"dtype", io::Tree::of(std::string(gguf::name(report.type)))},
                                          {"tensors", io::Tree::of(report.num_tensors)},
                                          {"bytes", io::Tree::of(report.bytes)},
                                          {"seconds", io::Tree::of(report.seconds)}})));
    return Ok{};
  }
  print_text(fmt::format("{}: {} in {}, {} tensors, {} in {:.2f} s\n", a.request.output, report.architecture,
                         gguf::name(report.type), report.num_tensors, to_string(Bytes(report.bytes)),
                         report.seconds));
  return Ok{};
}

}  // namespace

Command add_export(Parser app) {
  const auto declare = [](Parser c, ExportArguments& a) {
    c.add_option("--model", a.request.model, "a model directory, or a Hub id that is already cached")
        .required()
        .type_name("DIR|ID");
    c.add_option("--format", a.format, "format of the file").required().one_of({"gguf"});
    c.add_option("--output", a.request.output, "the file").required().type_name("FILE");
    c.add_option("--dtype,--type", a.dtype, "dtype of the matrices (default: as stored)")
        .one_of({"f32", "f16", "bf16", "q8_0"});
    c.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
    c.footer(kExportFooter);
  };
  return add_command<ExportArguments>(app, "export", "export a model for other programs: GGUF", declare,
                                      run_export);
}

}  // namespace plimsoll::cli
