#include "strategy/run_device.h"

#include <utility>

#include "base/machine_memory.h"
#include "io/file.h"
#include "settings/offload.h"
#include "strategy/card_products.h"
#include "strategy/run_card.h"

namespace plimsoll::strategy {
namespace {

Bytes device_memory(const settings::MemoryBudget& memory) {
  switch (memory.kind) {
    case settings::MemoryBudget::Kind::kBytes:
      return Bytes(memory.bytes);
    case settings::MemoryBudget::Kind::kShare:
      return Bytes(
          static_cast<int64_t>(memory.share * static_cast<double>(read_machine_memory().limit_bytes)));
    case settings::MemoryBudget::Kind::kAuto:
      break;
  }
  return Bytes(0);
}

Result<std::unique_ptr<runtime::Device>> make_device(devices::DeviceSpec spec, int64_t disk_bytes,
                                                     runtime::Communicator* communicator) {
  spec.communicator = communicator;
  if (disk_bytes > 0) {
    PLIMSOLL_TRY(io::create_writable_directory(spec.disk_folder));
    spec.has_queues = true;
  }
  return devices::make_device(spec);
}

}  // namespace

devices::DeviceSpec device_spec(const settings::RunConfig& config, int num_threads) {
  devices::DeviceSpec spec{.num_threads = num_threads, .disk_folder = settings::offload_folder(config)};
  if (const auto card = run_card(config)) {
    spec.kind = devices::DeviceKind::kCuda;
    spec.cuda = {card->ordinal, card->capability, Bytes(card->bytes), config.distributed.transport == "nccl"};
    return spec;
  }
  if (config.runtime.device != "discrete") return spec;
  const settings::DiscreteSettings& discrete = config.runtime.discrete;
  spec.kind = devices::DeviceKind::kDiscrete;
  spec.discrete.memory = device_memory(discrete.memory);
  spec.discrete.copy_bandwidth = discrete.copy_bandwidth.bytes_per_second;
  if (discrete.seed) spec.discrete.seed = static_cast<uint64_t>(*discrete.seed);
  spec.discrete.check = discrete.check;
  return spec;
}

std::unique_ptr<runtime::Target> make_target(const settings::RunConfig& config, int num_threads) {
  return devices::make_target(device_spec(config, num_threads));
}

Result<devices::DeviceSpec> device_spec(const settings::RunConfig& config, int num_threads,
                                        const Prepared& prepared) {
  devices::DeviceSpec spec = device_spec(config, num_threads);
  for (const passes::Program& program : prepared.programs.session.programs)
    spec.programs.push_back(&program.graph);
  if (spec.kind == devices::DeviceKind::kCuda) {
    PLIMSOLL_ASSIGN(spec.cuda.products, card_products(config));
  }
  return spec;
}

Result<std::unique_ptr<runtime::Device>> make_device(const settings::RunConfig& config, int num_threads,
                                                     int64_t disk_bytes,
                                                     runtime::Communicator* communicator) {
  PLIMSOLL_TRY(check_card_is_here(config));
  return make_device(device_spec(config, num_threads), disk_bytes, communicator);
}

Result<std::unique_ptr<runtime::Device>> make_device(const settings::RunConfig& config, int num_threads,
                                                     const Prepared& prepared,
                                                     runtime::Communicator* communicator) {
  PLIMSOLL_TRY(check_card_is_here(config));
  PLIMSOLL_ASSIGN(devices::DeviceSpec spec, device_spec(config, num_threads, prepared));
  return make_device(std::move(spec), prepared.report.disk_bytes, communicator);
}

}  // namespace plimsoll::strategy
