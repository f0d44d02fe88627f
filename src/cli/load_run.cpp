#include "cli/load_run.h"

#include "backends/cpu/kernels/isa.h"
#include "base/host.h"
#include "cli/first_use.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "measuring/machine_rates.h"
#include "strategy/memory_budget.h"

namespace plimsoll::cli {

namespace {

/// lora.adapter may be a run's folder. What is evaluated may be an adapter, whose base it names.
Status find_adapter(settings::RunUse use, settings::RunConfig& config) {
  if (!config.lora.adapter.empty()) {
    PLIMSOLL_ASSIGN(config.lora.adapter, io::find_adapter_folder(config.lora.adapter));
  } else if (use == settings::RunUse::kEvaluation && !config.lora.enabled) {
    PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(config.model.path));
    if (!is_folder) return Ok{};
    PLIMSOLL_ASSIGN(io::NamedModel named, io::find_named_model(config.model.path));
    if (named.adapter.empty()) return Ok{};
    if (named.note) note(*named.note);
    config.model.path = std::move(named.model);
    config.lora.enabled = true;
    config.lora.adapter = std::move(named.adapter);
  }
  return Ok{};
}

}  // namespace

Result<settings::RunConfig> load_run(const RunArguments& arguments, settings::RunUse use, bool quietly) {
  PLIMSOLL_ASSIGN(settings::RunConfig config,
                  settings::load_run_config(arguments.file, arguments.overrides, use));
  PLIMSOLL_TRY(find_adapter(use, config));
  if (quietly) return config;
  // Where a CPU has the instruction and is faster without, nothing is missing.
  const cpu::Isa isa = cpu::current_isa();
  if (config.computes_in(settings::Precision::kBf16) && isa < cpu::Isa::kAvx512Bf16 &&
      (isa < cpu::fastest_isa() || isa == cpu::best_isa()))
    config.notes.emplace_back(
        "neither AVX512_BF16 nor AMX is used: products of bf16 are computed in fp32 and take longer");
  for (const std::string& text : config.notes) note(text);
  for (const std::string& text : strategy::budget_notes(config, read_machine_memory())) note(text);
  measure_at_first_use(config, measuring::first_rates);
  return config;
}

}  // namespace plimsoll::cli
