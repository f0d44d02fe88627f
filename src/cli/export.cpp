// plimsoll export: a model for other programs.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "gguf/export_model.h"
#include "io/tree.h"
#include "model_tools/export_timm.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kExportFooter =
    R"(timm writes a folder for timm.create_model("local-dir:DIR", pretrained=True): ResNet, ConvNeXt and ViT models of the
sizes that timm has. Values keep their dtype.
gguf is llama.cpp's format: one file with weights, tokenizer and chat template. Norms, biases and positions
are always f32; q8_0 falls back to f16 if a row is not a multiple of 32. Families: gpt2, llama, mistral,
qwen2, qwen3, smollm3.

examples:
  plimsoll export --model runs/one/final --format gguf --output one.gguf
  plimsoll export --model DIR --format gguf --dtype q8_0 --output small.gguf
  plimsoll export --model runs/flowers/final --format timm --output flowers-timm
exit codes: 0 done, 2 usage, or a model that the format does not support, 65 model files, 74 I/O)";

struct ExportArguments {
  gguf::ExportRequest request;
  std::string format, dtype;
  bool json = false;
};

struct Exported {
  std::string architecture, dtype;
  int64_t tensors = 0, bytes = 0;
  double seconds = 0;
  std::vector<std::string> notes;
};

Result<Exported> export_to_timm(const ExportArguments& a) {
  if (!a.dtype.empty())
    return Error{ErrorCode::kInvalidArgument, "--dtype goes with --format gguf", "--dtype",
                 "timm's file keeps the dtype of the model; output.dtype chooses that of a run"};
  PLIMSOLL_ASSIGN(model_tools::TimmReport report,
                  model_tools::export_timm({.model = a.request.model, .output = a.request.output}));
  return Exported{report.architecture, "", report.num_tensors, report.bytes, report.seconds, report.notes};
}

Result<Exported> export_to_gguf(ExportArguments& a) {
  using gguf::TensorType;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBf16, TensorType::kQ8_0})
    if (gguf::name(type) == a.dtype) a.request.type = type;
  PLIMSOLL_ASSIGN(gguf::ExportReport report, gguf::export_model(a.request));
  return Exported{report.architecture, std::string(gguf::name(report.type)),
                  report.num_tensors,  report.bytes,
                  report.seconds,      std::move(report.notes)};
}

Status run_export(ExportArguments& a) {
  PLIMSOLL_ASSIGN(const Exported report, a.format == "timm" ? export_to_timm(a) : export_to_gguf(a));
  for (const std::string& note : report.notes) print_message("note: " + note);
  if (a.json) {
    io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("export"))},
                                    {"path", io::Tree::of(a.request.output)},
                                    {"architecture", io::Tree::of(report.architecture)}});
    if (!report.dtype.empty()) event.set("dtype", io::Tree::of(report.dtype));
    event.set("tensors", io::Tree::of(report.tensors));
    event.set("bytes", io::Tree::of(report.bytes));
    event.set("seconds", io::Tree::of(report.seconds));
    fmt::print("{}\n", io::to_json(event));
    return Ok{};
  }
  print_text(fmt::format("{}: {}{}, {} tensors, {} in {:.2f} s\n", a.request.output, report.architecture,
                         report.dtype.empty() ? "" : " in " + report.dtype, report.tensors,
                         to_string(Bytes(report.bytes)), report.seconds));
  return Ok{};
}

}  // namespace

Command add_export(Parser app) {
  const auto declare = [](Parser c, ExportArguments& a) {
    c.add_option("--model", a.request.model, "a model directory, or a Hub id that is already cached")
        .required()
        .type_name("DIR|ID");
    c.add_option("--format", a.format, "gguf: llama.cpp's file; timm: a folder of timm's")
        .required()
        .one_of({"gguf", "timm"});
    c.add_option("--output", a.request.output, "the file, or the folder to create")
        .required()
        .type_name("FILE|DIR");
    c.add_option("--dtype,--type", a.dtype, "gguf: dtype of the matrices (default: as stored)")
        .one_of({"f32", "f16", "bf16", "q8_0"});
    c.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
    c.footer(kExportFooter);
  };
  return add_command<ExportArguments>(app, "export", "export a model for other programs: GGUF, timm", declare,
                                      run_export);
}

}  // namespace plimsoll::cli
