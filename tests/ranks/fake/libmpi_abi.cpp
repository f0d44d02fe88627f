// A library of the standard's binary interface of MPI with one process, which sends messages to itself and
// checks that its handles are the standard's. PLIMSOLL_FAKE_MPI_THREADS: what MPI_Init_thread says it
// supports.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uintptr_t kWorld = 0x101, kErrorsReturn = 0x143, kRequestNull = 0x180, kByte = 0x247;
constexpr int kSerialized = 2048, kWrongHandle = 5;

bool is(const void* handle, uintptr_t value) { return reinterpret_cast<uintptr_t>(handle) == value; }

/// The message on its way.
const void* sent = nullptr;
int sent_bytes = 0;

}  // namespace

extern "C" {

int MPI_Get_library_version(char* text, int* length) {
  *length = std::sprintf(text, "Fake  MPI 1.0\nand more");
  return 0;
}
int MPI_Init_thread(int*, char***, int required, int* provided) {
  const char* threads = std::getenv("PLIMSOLL_FAKE_MPI_THREADS");
  *provided = threads != nullptr ? std::atoi(threads) : required;
  return required == kSerialized ? 0 : kWrongHandle;
}
int MPI_Finalize() { return 0; }
int MPI_Comm_rank(void* comm, int* rank) {
  *rank = 0;
  return is(comm, kWorld) ? 0 : kWrongHandle;
}
int MPI_Comm_size(void* comm, int* size) {
  *size = 1;
  return is(comm, kWorld) ? 0 : kWrongHandle;
}
int MPI_Comm_set_errhandler(void* comm, void* handler) {
  return is(comm, kWorld) && is(handler, kErrorsReturn) ? 0 : kWrongHandle;
}
int MPI_Error_string(int code, char* text, int* length) {
  *length = std::sprintf(text, "error %d of the fake", code);
  return 0;
}
int MPI_Isend(const void* bytes, int count, void* type, int to, int, void* comm, void** request) {
  if (!is(comm, kWorld) || !is(type, kByte) || !is(*request, kRequestNull) || to != 0) return kWrongHandle;
  sent = bytes;
  sent_bytes = count;
  return 0;
}
int MPI_Irecv(void* bytes, int count, void* type, int from, int, void* comm, void** request) {
  if (!is(comm, kWorld) || !is(type, kByte) || !is(*request, kRequestNull) || from != 0) return kWrongHandle;
  if (count != sent_bytes) return kWrongHandle;
  std::memcpy(bytes, sent, static_cast<size_t>(count));
  return 0;
}
int MPI_Test(void** request, int* done, void* status) {
  *done = 1;
  return is(*request, kRequestNull) && status == nullptr ? 0 : kWrongHandle;
}
}
