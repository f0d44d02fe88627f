#include "train/run_device.h"

#include "backends/cpu/cpu_device.h"

namespace plimsoll::train {

std::unique_ptr<runtime::Target> make_target(const RunConfig& /*config*/, int num_threads) {
  return std::make_unique<cpu::CpuTarget>(num_threads);
}

Result<std::unique_ptr<runtime::Device>> make_device(const RunConfig& config, int num_threads) {
  return std::unique_ptr<runtime::Device>(std::make_unique<cpu::CpuDevice>(num_threads, config.output.dir));
}

}  // namespace plimsoll::train
