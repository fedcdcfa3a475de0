// Turns, by ucontext. The sanitizers are told of each change of stack.
#include "fibers.hpp"

#include <utility>

#include "triax/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace triax::fused {

namespace {
constexpr std::size_t kStack = std::size_t{128} << 10;
}

struct Fibers::Fiber {
  ucontext_t context{};
  std::vector<std::byte> memory{};
  const void* stack = nullptr; // as the address sanitizer knows it
  std::size_t stack_size = 0;
  void* fake_stack = nullptr;
  void* thread = nullptr; // as the thread sanitizer knows it
  bool ended = false;
};

Fibers::Fibers(int count, std::mt19937& random) : random_(random), main_(std::make_unique<Fiber>()) {
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
    fiber.memory.resize(kStack);
    fiber.stack = fiber.memory.data();
    fiber.stack_size = kStack;
#if defined(__SANITIZE_THREAD__)
    fiber.thread = __tsan_create_fiber(0);
#endif
  }
}

Fibers::~Fibers() {
#if defined(__SANITIZE_THREAD__)
  for (const auto& fiber : fibers_) __tsan_destroy_fiber(fiber->thread);
#endif
}

void Fibers::run(const std::function<void(int)>& body) {
  body_ = &body;
  ready_.clear();
  ended_ = 0;
  error_ = nullptr;
#if defined(__SANITIZE_THREAD__)
  main_->thread = __tsan_get_current_fiber();
#endif
  for (int i = 0; i < static_cast<int>(fibers_.size()); ++i) {
    start(i);
    wake(i);
  }
  next(kMain);
  if (error_) std::rethrow_exception(error_);
  if (ended_ != static_cast<int>(fibers_.size())) {
    throw Error(
        text("{} of {} threads of a block wait for others that have ended", fibers_.size() - ended_, fibers_.size()));
  }
}

void Fibers::start(int fiber) {
  Fiber& it = *fibers_[static_cast<std::size_t>(fiber)];
  it.ended = false;
  it.fake_stack = nullptr;
  getcontext(&it.context);
  it.context.uc_stack.ss_sp = it.memory.data();
  it.context.uc_stack.ss_size = it.memory.size();
  it.context.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this); // makecontext passes ints
  makecontext(&it.context, reinterpret_cast<void (*)()>(&Fibers::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void Fibers::enter(unsigned high, unsigned low) {
  auto& all = *reinterpret_cast<Fibers*>(std::uintptr_t{high} << 32 | low);
  const int self = all.starting_;
#if defined(__SANITIZE_ADDRESS__)
  const void* stack = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &size);
  if (all.from_ == kMain) {
    all.main_->stack = stack;
    all.main_->stack_size = size;
  }
#endif
  try {
    (*all.body_)(self);
  } catch (...) {
    if (!all.error_) all.error_ = std::current_exception();
    all.ready_.clear(); // back to run()
  }
  ++all.ended_;
  all.fibers_[static_cast<std::size_t>(self)]->ended = true;
  all.next(self);
}

void Fibers::wait(int self) {
  next(self);
}

/// Lets one that is ready go on: any of them. When none is, run() does.
void Fibers::next(int self) {
  int to = kMain;
  if (!ready_.empty()) {
    const std::size_t pick = random_() % ready_.size();
    to = ready_[pick];
    ready_[pick] = ready_.back();
    ready_.pop_back();
  }
  if (to != self) switch_to(self, to, self != kMain && fibers_[static_cast<std::size_t>(self)]->ended);
}

void Fibers::switch_to(int from, int to, bool ends) {
  Fiber& old = from == kMain ? *main_ : *fibers_[static_cast<std::size_t>(from)];
  Fiber& now = to == kMain ? *main_ : *fibers_[static_cast<std::size_t>(to)];
  starting_ = to;
  from_ = from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &old.fake_stack, now.stack, now.stack_size);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(now.thread, 0);
#endif
  static_cast<void>(ends);
  swapcontext(&old.context, &now.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(old.fake_stack, nullptr, nullptr);
#endif
}

} // namespace triax::fused
