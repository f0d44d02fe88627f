#include "devices/devices.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_device.h"
#include "backends/discrete/discrete_device.h"

namespace plimsoll::devices {
namespace {

Result<std::unique_ptr<runtime::Device>> make_discrete(const DeviceSpec& spec) {
  discrete::DiscreteOptions options{.num_threads = spec.num_threads,
                                    .memory = spec.discrete.memory,
                                    .copy_bandwidth = spec.discrete.copy_bandwidth,
                                    .seed = spec.discrete.seed,
                                    .check = spec.discrete.check,
                                    .shares_host = spec.kind == DeviceKind::kCpu,
                                    .disk_folder = spec.disk_folder};
  PLIMSOLL_ASSIGN(options.fault, discrete::parse_fault(std::getenv("PLIMSOLL_FAULT")));
  PLIMSOLL_ASSIGN(auto device, discrete::DiscreteDevice::create(options));
  return std::unique_ptr<runtime::Device>(std::move(device));
}

/// Of a card's memory what no plan owns: context, kernels, graphs (docs/devices.md has what was measured).
constexpr int64_t kCardReserve = int64_t{1} << 30;

Bytes memory_of(const cuda::CardInfo& card) {
  return Bytes(std::max<int64_t>(0, card.memory.count - kCardReserve));
}

std::unique_ptr<runtime::Target> make_cuda_target(const DeviceSpec& spec) {
  const auto card = cuda::card_info(spec.cuda.ordinal);
  if (!card) return std::make_unique<cuda::CudaTarget>(0, Bytes(0), spec.num_threads);
  return std::make_unique<cuda::CudaTarget>(card->capability, memory_of(*card), spec.num_threads);
}

Result<std::unique_ptr<runtime::Device>> make_cuda(const DeviceSpec& spec) {
  const int ordinal = spec.cuda.ordinal;
  PLIMSOLL_ASSIGN(const cuda::CardInfo card, cuda::card_info(ordinal));
  PLIMSOLL_ASSIGN(auto device,
                  cuda::CudaDevice::create(
                      {.ordinal = ordinal, .memory = memory_of(card), .host_threads = spec.num_threads}));
  return std::unique_ptr<runtime::Device>(std::move(device));
}

}  // namespace

std::unique_ptr<runtime::Target> make_target(const DeviceSpec& spec) {
  if (spec.kind == DeviceKind::kCuda) return make_cuda_target(spec);
  if (spec.kind == DeviceKind::kDiscrete)
    return std::make_unique<discrete::DiscreteTarget>(spec.num_threads, spec.discrete.memory);
  return std::make_unique<cpu::CpuTarget>(spec.num_threads);
}

Result<std::unique_ptr<runtime::Device>> make_device(const DeviceSpec& spec) {
  if (spec.kind == DeviceKind::kCuda) return make_cuda(spec);
  if (spec.kind == DeviceKind::kDiscrete || spec.has_queues) return make_discrete(spec);
  return std::unique_ptr<runtime::Device>(
      std::make_unique<cpu::CpuDevice>(spec.num_threads, spec.disk_folder));
}

}  // namespace plimsoll::devices
