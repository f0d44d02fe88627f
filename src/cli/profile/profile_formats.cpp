#include "cli/profile/profile_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/numbers.h"
#include "cli/console.h"
#include "cli/inspect/inspect.h"
#include "cli/inspect/inspect_rounder.h"
#include "cli/profile/profile_run.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/json.h"

namespace plimsoll::cli {
namespace {

using numerics::Scheme;

constexpr Scheme kFormats[] = {Scheme::kFp16,          Scheme::kE4m3,  Scheme::kE5m2,
                               Scheme::kFp8Block1x128, Scheme::kMxfp8, Scheme::kNvfp4};

/// One operand of a layer, and what each format does to it.
struct Operand {
  std::string layer, name;            ///< "model.layers.0.mlp.down_proj", "x"
  std::vector<RoundingError> errors;  ///< as kFormats
};

/// "t.<layer>.<x|w|dy>"
Operand operand_of(std::string_view tensor) {
  const size_t dot = tensor.rfind('.');
  return {std::string(tensor.substr(2, dot - 2)), std::string(tensor.substr(dot + 1)), {}};
}

double largest(const RoundingError& e) { return std::max(-e.min, e.max); }

/// Trains; where the last step's operands lie.
Result<std::string> dump_operands(settings::RunConfig config, int64_t num_steps, const std::string& folder,
                                  bool json) {
  config = short_run(std::move(config), num_steps, folder);
  config.debug.dump_dir = folder + "/operands";
  config.debug.dump = {"operands"};
  config.data.buckets = {};  // the operands of a file have one length
  Console console(json);
  PLIMSOLL_ASSIGN(const auto run, open_run(config, console));
  std::string file;
  for (int64_t step = 1; step <= num_steps; ++step) {
    std::error_code ignored;
    if (!file.empty()) std::filesystem::remove(file, ignored);
    PLIMSOLL_TRY(run->trainer->step());
    file = fmt::format("{}/step-{:06}.safetensors", config.debug.dump_dir, step);
  }
  return file;
}

/// In the order of layers, x, w, dy of each.
Result<std::vector<Operand>> round_operands(const std::string& path) {
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file, io::SafetensorsFile::open(path));
  std::map<std::string, Operand> by_name;
  for (const Scheme scheme : kFormats) {
    TensorRounder rounder(file, scheme);
    for (const io::SafetensorsTensor& tensor : file.tensors()) rounder.take(tensor);
    PLIMSOLL_TRY(rounder.run());
    for (const RoundedTensor& rounded : rounder.subjects())
      by_name.try_emplace(rounded.tensor->name, operand_of(rounded.tensor->name))
          .first->second.errors.push_back(rounded.error);
  }
  std::vector<Operand> operands;
  for (auto& [name, operand] : by_name) operands.push_back(std::move(operand));
  const auto place = [](const Operand& o) { return o.name == "x" ? 0 : o.name == "w" ? 1 : 2; };
  std::ranges::stable_sort(operands, [&](const Operand& a, const Operand& b) {
    return a.layer == b.layer ? place(a) < place(b) : natural_less(a.layer, b.layer);
  });
  return operands;
}

std::string snr_text(const RoundingError& e) {
  if (e.squares == 0) return "-";
  return e.error_squares == 0 ? "exact" : fmt::format("{:.1f}", e.snr_db());
}

/// "31.5 dB, 0.2%": signal to noise, and what becomes 0; "!" where something is clipped.
std::string cell(const RoundingError& e) {
  const std::string lost = e.new_zeros == 0 ? "-" : share_text(e.new_zeros, e.elements);
  return fmt::format("{} {}{}", snr_text(e), lost, e.clipped + e.lost > 0 ? "!" : "");
}

std::string formats_table(const std::vector<Operand>& operands) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"layer"}, {"operand"}, {"largest", kRight}};
  for (const Scheme scheme : kFormats) columns.push_back({std::string(numerics::info(scheme).name), kRight});
  Table table(std::move(columns));
  for (const Operand& o : operands) {
    std::vector<std::string> row = {o.layer, o.name, fmt::format("{:.3g}", largest(o.errors[0]))};
    for (const RoundingError& e : o.errors) row.push_back(cell(e));
    table.add(std::move(row));
  }
  return table.text();
}

/// Of each format the operand with the lowest signal-to-noise ratio.
std::string worst_lines(const std::vector<Operand>& operands) {
  std::string lines;
  for (size_t f = 0; f < std::size(kFormats); ++f) {
    const Operand* worst = nullptr;
    for (const Operand& o : operands) {
      if (o.errors[f].squares == 0) continue;
      if (worst == nullptr || o.errors[f].snr_db() < worst->errors[f].snr_db()) worst = &o;
    }
    if (worst != nullptr)
      lines += fmt::format("{} has the lowest ratio at {} {}: {} dB\n", numerics::info(kFormats[f]).name,
                           printable(worst->layer), worst->name, snr_text(worst->errors[f]));
  }
  return lines;
}

io::Tree event_of(const Operand& o, size_t f) {
  const RoundingError& e = o.errors[f];
  const auto share = [&](int64_t part) {
    return io::Tree::of(static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, e.elements)));
  };
  return io::Tree::map({{"event", io::Tree::of(std::string("format"))},
                        {"layer", io::Tree::of(o.layer)},
                        {"operand", io::Tree::of(o.name)},
                        {"as", io::Tree::of(std::string(numerics::info(kFormats[f]).name))},
                        {"elements", io::Tree::of(e.elements)},
                        {"largest", io::Tree::of(largest(e))},
                        {"underflow_share", share(e.new_zeros)},
                        {"clipped_share", share(e.clipped + e.lost)},
                        {"relative_error", io::Tree::of(e.relative_error())},
                        {"snr_db", io::Tree::of(e.snr_db())}});  // null where nothing differs
}

}  // namespace

Status profile_formats(const settings::RunConfig& config, const profiling::ProfileSchedule& schedule,
                       const std::string& folder, bool json) {
  PLIMSOLL_ASSIGN(const std::string file, dump_operands(config, schedule.num_steps(), folder, json));
  PLIMSOLL_ASSIGN(const std::vector<Operand> operands, round_operands(file));
  if (operands.empty())
    return Error{ErrorCode::kInvalidArgument, "the model has no linear layers in its blocks", "--formats",
                 "profile without it"};
  if (json) {
    for (const Operand& o : operands)
      for (size_t f = 0; f < o.errors.size(); ++f) fmt::print("{}\n", io::to_json(event_of(o, f)));
    return Ok{};
  }
  print_text(fmt::format(
      "Operands of linear layers at step {}: signal to noise in dB and the share that becomes 0\n\n{}\n"
      "x: input, w: weight, dy: gradient of the result; !: numbers are clipped or become infinite\n\n{}",
      schedule.num_steps(), formats_table(operands), worst_lines(operands)));
  return Ok{};
}

}  // namespace plimsoll::cli
