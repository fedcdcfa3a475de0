// SPDX-License-Identifier: Apache-2.0
#include "support/stacks.hpp"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace triax::test {

namespace {

constexpr std::size_t kBytes = std::size_t{128} << 10;
constexpr std::size_t kPage = 4096, kApart = 5 * 64;

} // namespace

#if defined(__x86_64__)
extern "C" {
void triax_test_change_stack(void** left, void* to);
void triax_test_begin_stack();
}
// Saves the callee-saved registers on the old stack and restores them from the new one. A new stack finds begin() and
// its argument among them.
asm(R"(
  .text
  .type triax_test_change_stack, @function
triax_test_change_stack:
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
  .size triax_test_change_stack, .-triax_test_change_stack
  .type triax_test_begin_stack, @function
triax_test_begin_stack:
  movq %r12, %rdi
  call *%r13
  ud2
  .size triax_test_begin_stack, .-triax_test_begin_stack
)");
#endif

Stack::Stack(Entry entry, void* argument, std::size_t number)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(kBytes + kPage)), entry_(entry), argument_(argument) {
  bottom_ = memory_.get();
  size_ = kBytes + kPage - number * kApart % kPage;
#if defined(__SANITIZE_THREAD__)
  thread_ = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
  std::byte* end = memory_.get() + size_;
  end -= reinterpret_cast<std::uintptr_t>(end) % 16;
  auto** top = reinterpret_cast<void**>(end) - 9; // aligned as for a call of begin()
  const auto address = [](auto* function) { return reinterpret_cast<void*>(function); };
  void* const first[] = {nullptr, nullptr, address(&Stack::begin),          this,
                         nullptr, nullptr, address(&triax_test_begin_stack)}; // r15, r14, r13, r12, rbx, rbp, return
  for (std::size_t i = 0; i < std::size(first); ++i) top[i] = first[i];
  top_ = top;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory_.get();
  context_.uc_stack.ss_size = size_;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this); // makecontext passes ints
  makecontext(&context_, reinterpret_cast<void (*)()>(&Stack::begin_halves), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
#endif
}

Stack::~Stack() {
#if defined(__SANITIZE_THREAD__)
  if (memory_) __tsan_destroy_fiber(thread_);
#endif
}

#if !defined(__x86_64__)
void Stack::begin_halves(unsigned high, unsigned low) {
  begin(reinterpret_cast<void*>(std::uintptr_t{high} << 32 | low));
}
#endif

void Stack::begin(void* stack) {
  auto& self = *static_cast<Stack*>(stack);
  self.arrived();
  self.entry_(self.argument_);
}

/// The address of a thread's original stack becomes known when it is left.
void Stack::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &came_from_->bottom_, &came_from_->size_);
#endif
}

void Stack::change(Stack& from, Stack& to) {
  to.came_from_ = &from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
#if defined(__SANITIZE_THREAD__)
  if (!from.memory_) from.thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.thread_, 0);
#endif
#if defined(__x86_64__)
  triax_test_change_stack(&from.top_, to.top_);
#else
  swapcontext(&from.context_, &to.context_);
#endif
  from.arrived();
}

} // namespace triax::test
