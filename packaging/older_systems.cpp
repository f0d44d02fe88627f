// What lets binaries of Debian 12 run where glibc is 2.34 and libstdc++ that of GCC 11 (RHEL 9, the wheel's
// tag manylinux_2_34): two functions whose symbols are newer there than the functions are. Linked into the
// shared library and the wheel's program.
#include <pthread.h>

#include <condition_variable>
#include <mutex>

// The C library's of old. GLIBC_2.35 has another symbol for it, which does not set errno; the results are the
// same.
extern "C" double plimsoll_older_hypot(double x, double y);
__asm__(".symver plimsoll_older_hypot, hypot@GLIBC_2.2.5");

// Hidden: they serve the code that they are linked with.
#pragma GCC visibility push(hidden)
// GLIBCXX_3.4.30 moved it; what it does is one call.
extern "C" void plimsoll_wait(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) noexcept
    __asm__("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
extern "C" void plimsoll_wait(std::condition_variable* condition,
                              std::unique_lock<std::mutex>* lock) noexcept {
  pthread_cond_wait(condition->native_handle(), lock->mutex()->native_handle());
}

extern "C" double plimsoll_hypot(double x, double y) noexcept __asm__("hypot");
extern "C" double plimsoll_hypot(double x, double y) noexcept { return plimsoll_older_hypot(x, y); }
#pragma GCC visibility pop
