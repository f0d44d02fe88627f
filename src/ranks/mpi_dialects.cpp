#include "ranks/mpi_dialects.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace plimsoll::ranks {
namespace {

/// Between ranks, messages of one kind alone are under way.
constexpr int kTag = 1;
/// More than any library's MPI_MAX_ERROR_STRING.
constexpr size_t kErrorBytes = 1024;

/// What a dialect calls the things that mpi.h names.
template <typename Handle>
struct Names {
  Handle world{}, byte{}, errors_return{}, no_request{};
  int serialized = 2;             ///< MPI_THREAD_SERIALIZED
  void* ignore_status = nullptr;  ///< MPI_STATUS_IGNORE
};

template <typename Handle>
struct Functions {
  int (*init_thread)(int* argc, char*** argv, int required, int* provided) = nullptr;
  int (*finalize)() = nullptr;
  int (*comm_rank)(Handle comm, int* rank) = nullptr;
  int (*comm_size)(Handle comm, int* size) = nullptr;
  int (*comm_set_errhandler)(Handle comm, Handle handler) = nullptr;
  int (*error_string)(int code, char* text, int* length) = nullptr;
  int (*isend)(const void* bytes, int count, Handle type, int to, int tag, Handle comm,
               Handle* request) = nullptr;
  int (*irecv)(void* bytes, int count, Handle type, int from, int tag, Handle comm,
               Handle* request) = nullptr;
  int (*test)(Handle* request, int* done, void* status) = nullptr;
};

template <typename Function>
void look_up(void* library, Function*& function, const char* name, std::string& missing) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

template <typename Handle>
std::string look_up_all(void* library, Functions<Handle>& f) {
  std::string missing;
  const auto find = [&](auto*& function, const char* name) { look_up(library, function, name, missing); };
  find(f.init_thread, "MPI_Init_thread");
  find(f.finalize, "MPI_Finalize");
  find(f.comm_rank, "MPI_Comm_rank");
  find(f.comm_size, "MPI_Comm_size");
  find(f.comm_set_errhandler, "MPI_Comm_set_errhandler");
  find(f.error_string, "MPI_Error_string");
  find(f.isend, "MPI_Isend");
  find(f.irecv, "MPI_Irecv");
  find(f.test, "MPI_Test");
  return missing;
}

template <typename Handle>
class Calls final : public MpiCalls {
 public:
  Calls(const Functions<Handle>& functions, const Names<Handle>& names, std::string version)
      : f_(functions), names_(names), version_(std::move(version)) {
    requests_.fill(names_.no_request);
  }

  Status init() override {
    int provided = 0;
    PLIMSOLL_TRY(checked(f_.init_thread(nullptr, nullptr, names_.serialized, &provided), "MPI_Init_thread"));
    if (provided < names_.serialized)
      return Error{ErrorCode::kIo,
                   "MPI accepts calls from the first thread only (it has no MPI_THREAD_SERIALIZED)", version_,
                   "set distributed.library to a library that is built with support for threads"};
    return checked(f_.comm_set_errhandler(names_.world, names_.errors_return), "MPI_Comm_set_errhandler");
  }
  void finalize() override { (void)f_.finalize(); }
  int rank() override { return asked(f_.comm_rank); }
  int ranks() override { return asked(f_.comm_size); }
  Status send(std::span<const std::byte> bytes, int to, int slot) override {
    return checked(f_.isend(bytes.data(), static_cast<int>(bytes.size()), names_.byte, to, kTag, names_.world,
                            &request(slot)),
                   "MPI_Isend");
  }
  Status receive(std::span<std::byte> bytes, int from, int slot) override {
    return checked(f_.irecv(bytes.data(), static_cast<int>(bytes.size()), names_.byte, from, kTag,
                            names_.world, &request(slot)),
                   "MPI_Irecv");
  }
  Result<bool> is_done(int slot) override {
    int done = 0;
    PLIMSOLL_TRY(checked(f_.test(&request(slot), &done, names_.ignore_status), "MPI_Test"));
    return done != 0;
  }

 private:
  Handle& request(int slot) { return requests_[static_cast<size_t>(slot)]; }
  int asked(int (*function)(Handle, int*)) {
    int number = -1;
    (void)function(names_.world, &number);
    return number;
  }
  Status checked(int code, const char* function) {
    if (code == 0) return Ok{};
    std::array<char, kErrorBytes> text{};
    int length = 0;
    (void)f_.error_string(code, text.data(), &length);
    return Error{ErrorCode::kIo, fmt::format("{} failed: {}", function, text.data()), version_,
                 "see what the library printed, and run again"};
  }

  Functions<Handle> f_;
  Names<Handle> names_;
  std::string version_;
  std::array<Handle, kMpiSlots> requests_;
};

template <typename Handle>
Result<std::shared_ptr<MpiCalls>> make(void* library, const Names<Handle>& names,
                                       const std::string& version) {
  Functions<Handle> functions;
  if (const std::string missing = look_up_all(library, functions); !missing.empty())
    return Error{ErrorCode::kIo, fmt::format("the MPI library lacks {}", missing), version,
                 "set distributed.library to another one"};
  return std::shared_ptr<MpiCalls>(std::make_shared<Calls<Handle>>(functions, names, version));
}

void* handle_of(uintptr_t number) { return reinterpret_cast<void*>(number); }

}  // namespace

Result<std::shared_ptr<MpiCalls>> make_mpi_calls(void* library, MpiDialect dialect,
                                                 const std::string& version) {
  if (dialect == MpiDialect::kMpich)
    return make<int>(library,
                     {.world = 0x44000000,
                      .byte = 0x4c00010d,
                      .errors_return = 0x54000001,
                      .no_request = 0x2c000000,
                      .serialized = 2,
                      .ignore_status = handle_of(1)},
                     version);
  if (dialect == MpiDialect::kStandard)
    return make<void*>(library,
                       {.world = handle_of(0x101),
                        .byte = handle_of(0x247),
                        .errors_return = handle_of(0x143),
                        .no_request = handle_of(0x180),
                        .serialized = 2048,
                        .ignore_status = nullptr},
                       version);
  const auto object = [&](const char* name) { return ::dlsym(library, name); };
  return make<void*>(library,
                     {.world = object("ompi_mpi_comm_world"),
                      .byte = object("ompi_mpi_byte"),
                      .errors_return = object("ompi_mpi_errors_return"),
                      .no_request = object("ompi_request_null"),
                      .serialized = 2,
                      .ignore_status = nullptr},
                     version);
}

}  // namespace plimsoll::ranks
