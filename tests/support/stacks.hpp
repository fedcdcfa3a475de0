// A stack to run on, and the change from one to another.
//
// Threads: one at a time; from when something begins on it until that ends, a stack stays with its thread. Ownership:
// owns the memory. Blocking: never. Errors: none: no exception may leave what runs on a stack of its own. On x86-64 a
// change is a dozen instructions; elsewhere it is ucontext's, which asks the kernel each time. The sanitizers are told
// of each.
#pragma once

#include <cstddef>
#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace triax::test {

class Stack {
 public:
  using Entry = void (*)(void* argument);

  /// That of the thread which calls.
  Stack() = default;
  /// One that begins with entry(argument), which must not return. `number`: stacks of other numbers begin at other
  /// places of a page, so that a cache keeps the ends of many.
  Stack(Entry entry, void* argument, std::size_t number);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();

  /// Goes on where `to` was left, or begins it; comes back when something changes to `from`.
  static void change(Stack& from, Stack& to);

 private:
  static void begin(void* stack);
  void arrived();

  std::unique_ptr<std::byte[]> memory_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
#if defined(__x86_64__)
  void* top_ = nullptr; // where it was left
#else
  static void begin_halves(unsigned high, unsigned low);
  ucontext_t context_{};
#endif
  const void* bottom_ = nullptr; // as the address sanitizer knows it
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
  void* thread_ = nullptr; // as the thread sanitizer knows it
  Stack* came_from_ = nullptr;
};

} // namespace triax::test
