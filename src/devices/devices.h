// The one place that knows which devices there are. Everything above asks for one by its description.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "runtime/communicator.h"
#include "runtime/device.h"

namespace plimsoll::devices {

enum class DeviceKind : uint8_t {
  kCpu,
  kDiscrete,  ///< the CPU's kernels behind asynchronous queues, with memory of its own
  kCuda       ///< an NVIDIA card
};

/// Of kDiscrete.
struct DiscreteSpec {
  Bytes memory = {};                  ///< 0: as much as the process is given
  double copy_bandwidth = 0;          ///< bytes a second in each direction; 0: memory speed
  std::optional<uint64_t> seed = {};  ///< of the adversary; nothing: nothing is delayed or split
  bool check = false;                 ///< make device memory fault if the host touches it, for tests
};

/// A CUDA card as planning knows it.
struct CudaCard {
  std::string name = {};  ///< as its driver has it, "NVIDIA H100 80GB HBM3"
  int capability = 0;     ///< 90; 0: not known
  Bytes memory = {};      ///< all that the driver has of it; 0: not known
};
/// The card that the driver counts as `ordinal`. Errors: kInvalidArgument where there is no such card; kIo
/// without a driver.
Result<CudaCard> cuda_card(int ordinal);
/// How many cards the driver counts; 0 without one.
int num_cuda_cards();
/// Says that this process is that one of several ranks on its machine, of which each takes a card of its own.
/// Once, before anything asks for a card.
void set_local_rank(int rank);
/// 0 where nobody said.
int local_rank();

/// A library of NCCL, by which ranks on cards exchange bytes without their hosts.
struct NcclLibrary {
  std::string path, version;  ///< "2.28.9"
};
/// That of this machine, which stays loaded. Errors: kIo where there is none, or too old a one.
Result<NcclLibrary> nccl_library();

/// Of cuBLASLt, which computes a card's products: 130100 of 13.1.0. Loads it. Errors: kIo where it is not
/// there.
Result<int64_t> product_library_version();

/// Of kCuda.
struct CudaSpec {
  int ordinal = 0;         ///< which card, as the driver counts
  int capability = 0;      ///< of the card that is planned for; 0: not known
  Bytes memory = {};       ///< what plans may take of it; 0: not known
  bool uses_nccl = false;  ///< between ranks
  /// Algorithms of products, as tune_products found them; empty: the library's favourites.
  std::string products = {};
};

struct DeviceSpec {
  DeviceKind kind = DeviceKind::kCpu;
  int num_threads = 1;  ///< that compute
  DiscreteSpec discrete = {};
  CudaSpec cuda = {};
  /// What will run on it: a card has the kernels of these compiled before it begins; empty: all kernels.
  std::vector<const ir::Graph*> programs = {};
  std::string disk_folder = {};  ///< of memory on the disk; empty: there is none
  /// What is moved goes beside what computes, by threads of its own: where programs use the disk.
  bool has_queues = false;
  runtime::Communicator* communicator =
      nullptr;  ///< of ops between ranks; outlives the device; null: it is alone
};

/// Times the algorithms that the card's library proposes for the products of spec.programs, and tells the
/// fastest of each, for CudaSpec::products. Errors: as make_device.
Result<std::string> tune_products(const DeviceSpec& spec);

/// What planning asks: a pure function of the description. Starts no thread, takes no memory, asks no card.
std::unique_ptr<runtime::Target> make_target(const DeviceSpec& spec);

/// Host memory that a device with memory of its own takes to exchange with so many ranks.
int64_t exchange_bytes(DeviceKind kind, int64_t ranks);

/// What runs; its target() answers as make_target's. The environment's PLIMSOLL_FAULT=copy_in:17 lets the
/// 17th piece of work of that queue (compute, copy_in, copy_out, host) of a discrete device fail, and
/// compute:17:flip lets it give a wrong bit, for tests of what follows. Errors: kInvalidArgument for another
/// text there; kIo where the system gives no threads, or there is no card, driver, compiler or cuBLASLt.
Result<std::unique_ptr<runtime::Device>> make_device(const DeviceSpec& spec);

}  // namespace plimsoll::devices
