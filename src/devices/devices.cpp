#include "devices/devices.h"

#include <cstdlib>
#include <utility>

#include "backends/cpu/cpu_device.h"
#include "backends/cuda/api.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/host_collectives.h"
#include "backends/cuda/nccl.h"
#include "backends/discrete/discrete_device.h"

namespace plimsoll::devices {
namespace {

/// Of the process, as its launcher's variables are.
int rank_on_machine = 0;

Result<std::unique_ptr<runtime::Device>> make_discrete(const DeviceSpec& spec) {
  discrete::DiscreteOptions options{.num_threads = spec.num_threads,
                                    .memory = spec.discrete.memory,
                                    .copy_bandwidth = spec.discrete.copy_bandwidth,
                                    .seed = spec.discrete.seed,
                                    .check = spec.discrete.check,
                                    .shares_host = spec.kind == DeviceKind::kCpu,
                                    .disk_folder = spec.disk_folder,
                                    .communicator = spec.communicator};
  PLIMSOLL_ASSIGN(options.fault, discrete::parse_fault(std::getenv("PLIMSOLL_FAULT")));
  PLIMSOLL_ASSIGN(auto device, discrete::DiscreteDevice::create(options));
  return std::unique_ptr<runtime::Device>(std::move(device));
}

Result<std::unique_ptr<cuda::CudaDevice>> make_cuda(const DeviceSpec& spec) {
  return cuda::CudaDevice::create({.ordinal = spec.cuda.ordinal,
                                   .memory = spec.cuda.memory,
                                   .host_threads = spec.num_threads,
                                   .programs = spec.programs,
                                   .products = spec.cuda.products,
                                   .communicator = spec.communicator,
                                   .uses_nccl = spec.cuda.uses_nccl});
}

}  // namespace

Result<CudaCard> cuda_card(int ordinal) {
  PLIMSOLL_ASSIGN(const cuda::CardInfo card, cuda::card_info(ordinal));
  return CudaCard{card.name, card.capability, card.memory};
}

Result<NcclLibrary> nccl_library() {
  PLIMSOLL_ASSIGN(const cuda::Nccl* nccl, cuda::load_nccl());
  return NcclLibrary{nccl->path, nccl->version};
}

void set_local_rank(int rank) { rank_on_machine = rank; }
int local_rank() { return rank_on_machine; }
int num_cuda_cards() { return cuda::num_cards(); }

int64_t exchange_bytes(DeviceKind kind, int64_t ranks) {
  return kind == DeviceKind::kCuda && ranks > 1 ? cuda::HostCollectives::staging_bytes(ranks) : 0;
}

Result<int64_t> product_library_version() {
  PLIMSOLL_ASSIGN(const cuda::Blas* blas, cuda::load_blas());
  return static_cast<int64_t>(blas->version());
}

std::unique_ptr<runtime::Target> make_target(const DeviceSpec& spec) {
  if (spec.kind == DeviceKind::kCuda)
    return std::make_unique<cuda::CudaTarget>(spec.cuda.capability, spec.cuda.memory, spec.num_threads);
  if (spec.kind == DeviceKind::kDiscrete)
    return std::make_unique<discrete::DiscreteTarget>(spec.num_threads, spec.discrete.memory);
  return std::make_unique<cpu::CpuTarget>(spec.num_threads);
}

Result<std::string> tune_products(const DeviceSpec& spec) {
  PLIMSOLL_ASSIGN(const auto device, make_cuda(spec));
  return device->tune_products(spec.programs);
}

Result<std::unique_ptr<runtime::Device>> make_device(const DeviceSpec& spec) {
  if (spec.kind == DeviceKind::kCuda) {
    PLIMSOLL_ASSIGN(auto device, make_cuda(spec));
    return std::unique_ptr<runtime::Device>(std::move(device));
  }
  if (spec.kind == DeviceKind::kDiscrete || spec.has_queues) return make_discrete(spec);
  return std::unique_ptr<runtime::Device>(
      std::make_unique<cpu::CpuDevice>(spec.num_threads, spec.disk_folder, spec.communicator));
}

}  // namespace plimsoll::devices
