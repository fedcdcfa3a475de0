// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's streams and events: what they order, and what they do not.
#include <chrono>
#include <thread>

#include "runtime_harness.hpp"

namespace triax::test {
namespace {

class RuntimeStreams : public RuntimeTest {
 protected:
  void append(std::uint32_t* p, std::uint32_t value, cudaStream_t stream) {
    ok(kernels.launch("append", 1, 1, 0, stream, p, value));
  }
  std::uint32_t* zero() {
    std::uint32_t* p = allocate(1);
    ok(cudaMemset(p, 0, 4));
    return p;
  }
  LoadedKernels kernels{kSetAndAppend};
};

TEST_F(RuntimeStreams, RunTheirWorkInOrder) {
  std::uint32_t* p = zero();
  const cudaStream_t stream = make_stream();
  for (std::uint32_t n = 1; n <= 6; ++n) append(p, n, stream);
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(value_at(p), 123456u);
}

TEST_F(RuntimeStreams, DoNotWaitForEachOther) {
  std::uint32_t *p = zero(), *blocker = allocate_pinned(1);
  const cudaStream_t held = make_stream(), other = make_stream();
  EXPECT_EQ(hold(held, blocker), CUDA_SUCCESS);
  append(p, 2, held);
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
  append(p, 1, other);
  ok(cudaStreamSynchronize(other));
  EXPECT_EQ(cudaStreamQuery(other), cudaSuccess);
  open(blocker);
  ok(cudaStreamSynchronize(held));
  EXPECT_EQ(value_at(p), 12u);
  cudaGetLastError();
}

TEST_F(RuntimeStreams, WaitForEventsAsTheyWereWhenTheWaitWasCalled) {
  std::uint32_t *p = zero(), *first = allocate_pinned(1), *second = allocate_pinned(1);
  const cudaStream_t a = make_stream(), b = make_stream();
  const cudaEvent_t event = make_event();
  hold(a, first);
  append(p, 1, a);
  ok(cudaEventRecord(event, a));
  ok(cudaStreamWaitEvent(b, event, 0));
  append(p, 2, b);
  hold(a, second);
  ok(cudaEventRecord(event, a)); // the wait above is for the earlier record
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  open(first);
  ok(cudaStreamSynchronize(b));
  EXPECT_EQ(value_at(p), 12u);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  open(second);
  ok(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  cudaGetLastError();
}

TEST_F(RuntimeStreams, RefuseEventsThatWereNeverRecorded) {
  const cudaEvent_t event = make_event();
  const cudaStream_t stream = make_stream();
  refused(cudaErrorInvalidValue, "never recorded", [&] { return cudaStreamWaitEvent(stream, event, 0); });
  refused(cudaErrorInvalidValue, "never recorded", [&] { return cudaEventQuery(event); });
  refused(cudaErrorInvalidValue, "never recorded", [&] { return cudaEventSynchronize(event); });
  ok(cudaEventRecord(event, stream));
  ok(cudaStreamWaitEvent(stream, event, 0));
}

TEST_F(RuntimeStreams, RefuseHandlesThatAreNotTheirs) {
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  ok(cudaStreamDestroy(stream));
  ok(cudaEventDestroy(event));
  refused(cudaErrorInvalidResourceHandle, "the stream was destroyed", [&] { return cudaStreamSynchronize(stream); });
  refused(cudaErrorInvalidResourceHandle, "the stream was destroyed", [&] { return cudaStreamDestroy(stream); });
  refused(cudaErrorInvalidResourceHandle, "the event was destroyed", [&] { return cudaEventQuery(event); });
  int own = 0;
  refused(cudaErrorInvalidResourceHandle, "not a stream",
          [&] { return cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&own)); });
  refused(cudaErrorNotSupported, "per-thread default stream",
          [&] { return cudaStreamSynchronize(cudaStreamPerThread); });
}

TEST_F(RuntimeStreams, OfOneDeviceTakeItsEventsOnly) {
  const cudaEvent_t event = make_event();
  ok(cudaSetDevice(device_ + 1));
  const cudaStream_t stream = make_stream();
  refused(cudaErrorInvalidResourceHandle, "the event is GPU", [&] { return cudaEventRecord(event, stream); });
  ok(cudaEventRecord(make_event(), stream));
}

TEST_F(RuntimeStreams, LegacyDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  std::uint32_t *p = zero(), *blocker = allocate_pinned(1);
  const cudaStream_t before = make_stream(cudaStreamDefault), after = make_stream(cudaStreamDefault);
  hold(before, blocker);
  append(p, 1, before);
  append(p, 2, nullptr);
  append(p, 3, after);
  EXPECT_EQ(cudaStreamQuery(after), cudaErrorNotReady);
  open(blocker);
  ok(cudaStreamSynchronize(after));
  EXPECT_EQ(value_at(p), 123u);
  cudaGetLastError();
}

TEST_F(RuntimeStreams, LegacyDefaultStreamDoesNotWaitForOthers) {
  std::uint32_t *p = zero(), *blocker = allocate_pinned(1);
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  hold(stream, blocker);
  append(p, 2, stream);
  append(p, 1, nullptr);
  ok(cudaStreamSynchronize(nullptr));
  open(blocker);
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(value_at(p), 12u);
}

TEST_F(RuntimeStreams, WaitsForValuesAreChecked) {
  const cudaStream_t stream = make_stream();
  std::uint32_t own = 0, *device = allocate(1), *pinned = allocate_pinned(2);
  EXPECT_EQ(hold(stream, &own), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hold(stream, reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(pinned) + 2)),
            CUDA_ERROR_INVALID_VALUE);
  pinned[0] = 5; // GEQ
  EXPECT_EQ(hold(stream, pinned), CUDA_SUCCESS);
  ok(cudaMemset(device, 1, 4));
  EXPECT_EQ(hold(stream, device), CUDA_SUCCESS);
  ok(cudaStreamSynchronize(stream));
  cudaGetLastError();
}

TEST_F(RuntimeStreams, WaitForEachConditionOfAValue) {
  struct Case {
    unsigned condition;
    std::uint32_t operand;
    std::vector<std::uint32_t> waits, ends; // values with which the wait continues, and with which it ends
  };
  const std::uint32_t all = ~std::uint32_t{0}, top = std::uint32_t{1} << 31;
  const Case cases[] = {{CU_STREAM_WAIT_VALUE_GEQ, 5, {0, 4, 5 + top}, {5, 6, 4 + top}},
                        {CU_STREAM_WAIT_VALUE_GEQ, top + 5, {5, top + 4}, {4, top + 5, 0}},
                        {CU_STREAM_WAIT_VALUE_EQ, 5, {0, 4, 6, 7}, {5}},
                        {CU_STREAM_WAIT_VALUE_AND, 6, {0, 1, 8, 9}, {2, 4, 7}},
                        {CU_STREAM_WAIT_VALUE_NOR, ~std::uint32_t{6}, {6, 7, all}, {0, 2, 4, 1}}};
  const cudaStream_t stream = make_stream();
  std::uint32_t* value = allocate_pinned(1);
  for (const Case& each : cases) {
    for (const std::uint32_t end : each.ends) {
      std::atomic_ref<std::uint32_t> now(*value);
      now.store(each.waits.front(), std::memory_order_release);
      EXPECT_EQ(wait_for_value(stream, value, each.operand, each.condition), CUDA_SUCCESS);
      for (const std::uint32_t wait : each.waits) {
        now.store(wait, std::memory_order_release);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << each.condition << " of " << wait;
      }
      now.store(end, std::memory_order_release);
      ok(cudaStreamSynchronize(stream));
    }
  }
  cudaGetLastError();
}

// A kernel that says that it runs, waits for the other launch, and then accesses p[0]; the other accesses p[0] or p[1],
// and says so.
constexpr const char* kTwoKernels = R"(
.visible .entry first_writes(.param .u64 p, .param .u64 flags) {
  .reg .u64 %p, %f; .reg .u32 %r; .reg .pred %go;
  ld.param.u64 %p, [p]; ld.param.u64 %f, [flags];
  st.volatile.global.u32 [%f], 1;
WAIT: ld.volatile.global.u32 %r, [%f+4]; setp.eq.u32 %go, %r, 0; @%go bra WAIT;
  st.global.u32 [%p], 7; ret;
}
.visible .entry first_reads(.param .u64 p, .param .u64 flags) {
  .reg .u64 %p, %f; .reg .u32 %r; .reg .pred %go;
  ld.param.u64 %p, [p]; ld.param.u64 %f, [flags];
  st.volatile.global.u32 [%f], 1;
WAIT: ld.volatile.global.u32 %r, [%f+4]; setp.eq.u32 %go, %r, 0; @%go bra WAIT;
  ld.global.u32 %r, [%p]; ret;
}
.visible .entry writes(.param .u64 p, .param .u64 flags) {
  .reg .u64 %p, %f;
  ld.param.u64 %p, [p]; ld.param.u64 %f, [flags];
  st.global.u32 [%p], 5; st.volatile.global.u32 [%f+4], 1; ret;
}
.visible .entry reads(.param .u64 p, .param .u64 flags) {
  .reg .u64 %p, %f; .reg .u32 %r;
  ld.param.u64 %p, [p]; ld.param.u64 %f, [flags];
  ld.global.u32 %r, [%p]; st.volatile.global.u32 [%f+4], 1; ret;
}
)";

TEST_F(RuntimeStreams, ThatNothingOrdersHaveHazards) {
  LoadedKernels two(kTwoKernels);
  std::uint32_t* p = allocate(2);
  ok(cudaMemset(p, 0, 8));
  // Returns what the first launch ends with.
  auto run_both = [&](const std::string& first, const std::string& second, std::uint32_t* other) {
    const cudaStream_t a = make_stream(), b = make_stream();
    std::uint32_t* flags = allocate_pinned(2);
    ok(two.launch(first, 1, 1, 0, a, p, flags));
    while (std::atomic_ref<std::uint32_t>(flags[0]).load(std::memory_order_acquire) == 0) std::this_thread::yield();
    ok(two.launch(second, 1, 1, 0, b, other, flags));
    return cudaStreamSynchronize(a);
  };
  ok(run_both("first_reads", "reads", p));
  ok(run_both("first_reads", "writes", p + 1));
  ok(run_both("first_writes", "reads", p + 1));
  refused(cudaErrorLaunchFailure, "writes what was read by another launch, which runs at the same time",
          [&] { return run_both("first_writes", "reads", p); });
  SetUp(); // errors of devices stay
  p = allocate(1);
  ok(cudaMemset(p, 0, 4));
  refused(cudaErrorLaunchFailure, "reads what was written by another launch, which runs at the same time",
          [&] { return run_both("first_reads", "writes", p); });
}

TEST_F(RuntimeStreams, EventsMeasureTime) {
  cudaEvent_t begin = nullptr, end = nullptr;
  ok(cudaEventCreate(&begin));
  ok(cudaEventCreate(&end));
  std::uint32_t* blocker = allocate_pinned(1);
  const cudaStream_t stream = make_stream();
  ok(cudaEventRecord(begin, stream));
  ok(cudaEventSynchronize(begin)); // before the wait below, however late the stream's thread runs
  hold(stream, blocker);
  ok(cudaEventRecord(end, stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  open(blocker);
  ok(cudaEventSynchronize(end));
  ok(cudaEventElapsedTime(&milliseconds, begin, end));
  EXPECT_GE(milliseconds, 4);
  const cudaEvent_t untimed = make_event();
  ok(cudaEventRecord(untimed, stream));
  refused(cudaErrorInvalidResourceHandle, "cudaEventDisableTiming",
          [&] { return cudaEventElapsedTime(&milliseconds, begin, untimed); });
}

TEST_F(RuntimeStreams, WorkAfterAnErrorDoesNotRun) {
  std::uint32_t *p = zero(), *blocker = allocate_pinned(1);
  const cudaStream_t stream = make_stream();
  hold(stream, blocker);
  ok(kernels.launch("set", 1, 1, 0, stream, p + 1, 1u)); // out of bounds
  ok(kernels.launch("set", 1, 1, 0, stream, p, 7u));
  open(blocker);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorIllegalAddress);
}

TEST_F(RuntimeStreams, AreMadeWithKnownFlagsOnly) {
  cudaStream_t stream = nullptr;
  refused(cudaErrorInvalidValue, "the pointer to the stream is null", [] { return cudaStreamCreate(nullptr); });
  refused(cudaErrorInvalidValue, "flags 8 are not known", [&] { return cudaStreamCreateWithFlags(&stream, 8); });
}

} // namespace
} // namespace triax::test
