#include "backends/cuda/twin/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace twin {
namespace {
constexpr size_t kStack = size_t{256} << 10, kPage = 4096;
}  // namespace

char* Stacks::take() {
  if (free_.empty()) {
    void* at =
        mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at, kPage, PROT_NONE) != 0) std::abort();
    all_.push_back(static_cast<char*>(at));
    // Not all at one offset of their pages: they would take the same places in the cache.
    free_.push_back(static_cast<char*>(at) + kStack - all_.size() % 16 * 192);
  }
  char* end = free_.back();
  free_.pop_back();
  return end;
}

Stacks::~Stacks() {
  for (char* at : all_) munmap(at, kStack);
}

#ifdef __x86_64__

// The registers that a call keeps, then the place to return to.
asm(R"(
.pushsection .text
.hidden plimsoll_twin_switch
.globl plimsoll_twin_switch
.type plimsoll_twin_switch, @function
plimsoll_twin_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size plimsoll_twin_switch, .-plimsoll_twin_switch
.popsection
)");
extern "C" void plimsoll_twin_switch(void** from, void* to);

void switch_to(void** from, void* to) { plimsoll_twin_switch(from, to); }

void* begin_at(char* stack_end, void (*entry)()) {
  auto* top = reinterpret_cast<uintptr_t*>(reinterpret_cast<uintptr_t>(stack_end) & ~uintptr_t{15});
  *--top = 0;  // nowhere to return to
  *--top = reinterpret_cast<uintptr_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  return top;
}

#else

// A context lies at the end of its stack; that of who runs the block is where it was left.
void switch_to(void** from, void* to) {
  ucontext_t mine;
  *from = &mine;
  swapcontext(&mine, static_cast<ucontext_t*>(to));
}

void* begin_at(char* stack_end, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(
      (reinterpret_cast<uintptr_t>(stack_end) - sizeof(ucontext_t)) & ~uintptr_t{63});
  getcontext(context);
  context->uc_stack.ss_sp = stack_end - kStack + kPage + 16 * 192;
  context->uc_stack.ss_size =
      static_cast<size_t>(reinterpret_cast<char*>(context) - static_cast<char*>(context->uc_stack.ss_sp));
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif

}  // namespace twin
