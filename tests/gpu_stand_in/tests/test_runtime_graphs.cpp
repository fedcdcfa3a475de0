// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's captures and graphs.
#include <thread>

#include "runtime_harness.hpp"

namespace triax::test {
namespace {

class RuntimeGraphs : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    p = allocate(1);
    ok(cudaMemset(p, 0, 4));
    a = make_stream();
    b = make_stream();
    event = make_event();
  }
  void append(std::uint32_t value, cudaStream_t stream) { ok(kernels.launch("append", 1, 1, 0, stream, p, value)); }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) { ok(cudaStreamBeginCapture(a, mode)); }
  // `to` comes after what `from` has so far.
  void order(cudaStream_t from, cudaStream_t to) {
    const cudaEvent_t each = make_event();
    ok(cudaEventRecord(each, from));
    ok(cudaStreamWaitEvent(to, each, 0));
  }
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(a, &graph));
    cudaGraphExec_t exec = nullptr;
    ok(cudaGraphInstantiate(&exec, graph, 0));
    ok(cudaGraphDestroy(graph)); // the executable graph stays
    return exec;
  }
  cudaError_t end_result() {
    cudaGraph_t graph = nullptr;
    return cudaStreamEndCapture(a, &graph);
  }

  LoadedKernels kernels{kSetAndAppend};
  std::uint32_t* p = nullptr;
  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t event = nullptr;
};

TEST_F(RuntimeGraphs, RunTheCapturedWorkAtEachLaunch) {
  begin();
  append(1, a);
  append(2, a);
  const cudaGraphExec_t exec = end();
  ok(cudaStreamSynchronize(a));
  EXPECT_EQ(value_at(p), 0u) << "captured work does not run";
  ok(cudaGraphLaunch(exec, b));
  ok(cudaGraphLaunch(exec, b));
  ok(cudaStreamSynchronize(b));
  EXPECT_EQ(value_at(p), 1212u);
  ok(cudaGraphExecDestroy(exec));
  refused(cudaErrorInvalidResourceHandle, "was destroyed", [&] { return cudaGraphLaunch(exec, b); });
}

TEST_F(RuntimeGraphs, BelongToOneDevice) {
  begin();
  append(1, a);
  const cudaGraphExec_t exec = end();
  ok(cudaSetDevice(device_ + 1));
  cudaStream_t other = nullptr;
  ok(cudaStreamCreate(&other));
  const std::string graph = "the graph is GPU " + std::to_string(device_) + "'s";
  refused(cudaErrorInvalidResourceHandle, graph, [&] { return cudaGraphLaunch(exec, other); });
  ok(cudaSetDevice(device_));
}

TEST_F(RuntimeGraphs, KeepTheOrderThatEventsGive) {
  begin();
  append(1, a);
  order(a, b);
  append(2, b);
  order(b, a);
  append(3, a);
  ok(cudaGraphLaunch(end(), a));
  ok(cudaStreamSynchronize(a));
  EXPECT_EQ(value_at(p), 123u);
}

TEST_F(RuntimeGraphs, RunBranchesInAnotherOrderThanTheyWereCaptured) {
  begin();
  order(a, b);
  append(1, a); // nothing orders it with 2: the planted fault shows
  append(2, b);
  order(b, a);
  ok(cudaGraphLaunch(end(), a));
  ok(cudaStreamSynchronize(a));
  EXPECT_EQ(value_at(p), 21u);
}

TEST_F(RuntimeGraphs, LaunchesOfOneGraphDoNotOverlap) {
  std::uint32_t* blocker = allocate_pinned(1);
  begin();
  hold(a, blocker);
  append(1, a);
  const cudaGraphExec_t exec = end();
  ok(cudaGraphLaunch(exec, a));
  ok(cudaGraphLaunch(exec, b));
  open(blocker);
  ok(cudaStreamSynchronize(b));
  EXPECT_EQ(value_at(p), 11u);
}

TEST_F(RuntimeGraphs, WaitingNodesDoNotHoldOthers) {
  std::uint32_t* blocker = allocate_pinned(1);
  begin();
  order(a, b);
  append(1, a);
  hold(b, blocker);
  append(2, b);
  order(b, a);
  ok(cudaGraphLaunch(end(), a));
  std::uint32_t seen = 0;
  while (seen == 0) ok(cudaMemcpy(&seen, p, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(seen, 1u);
  open(blocker);
  ok(cudaStreamSynchronize(a));
  EXPECT_EQ(value_at(p), 12u);
}

TEST_F(RuntimeGraphs, AForkThatIsNotJoinedIsRefused) {
  begin();
  order(a, b);
  append(1, b);
  refused(cudaErrorStreamCaptureUnjoined, "does not wait for 1 of 1 captured nodes", [&] { return end_result(); });
  append(2, b); // the streams do not capture any more
  ok(cudaStreamSynchronize(b));
  EXPECT_EQ(value_at(p), 2u);
}

TEST_F(RuntimeGraphs, WorkThatIsNotCapturedCannotBeWaitedFor) {
  ok(cudaEventRecord(event, b));
  begin();
  refused(cudaErrorStreamCaptureIsolation, "work that is not captured",
          [&] { return cudaStreamWaitEvent(a, event, 0); });
  refused(cudaErrorStreamCaptureInvalidated, "work that is not captured", [&] { return end_result(); });
}

TEST_F(RuntimeGraphs, CapturedEventsCannotBeWaitedForByTheHost) {
  cudaEvent_t timed = nullptr;
  ok(cudaEventCreate(&timed));
  float milliseconds = 0;
  const std::pair<const char*, std::function<cudaError_t()>> calls[] = {
      {"cudaEventQuery", [&] { return cudaEventQuery(event); }},
      {"cudaEventSynchronize", [&] { return cudaEventSynchronize(event); }},
      {"cudaEventElapsedTime", [&] { return cudaEventElapsedTime(&milliseconds, timed, timed); }}};
  for (const auto& [name, call] : calls) {
    begin();
    ok(cudaEventRecord(event, a));
    ok(cudaEventRecord(timed, a));
    refused(cudaErrorCapturedEvent, "recorded in a capture", call);
    refused(cudaErrorStreamCaptureInvalidated, std::string(name) + " was called for a captured event",
            [&] { return kernels.launch("append", 1, 1, 0, a, p, 1u); });
    refused(cudaErrorStreamCaptureInvalidated, std::string(name) + " was called for a captured event",
            [&] { return end_result(); });
  }
}

TEST_F(RuntimeGraphs, CapturedEventsEndWithTheirCapture) {
  begin();
  ok(cudaEventRecord(event, a));
  end();
  refused(cudaErrorCapturedEvent, "has ended", [&] { return cudaStreamWaitEvent(b, event, 0); });
  refused(cudaErrorCapturedEvent, "recorded in a capture", [&] { return cudaEventQuery(event); });
}

TEST_F(RuntimeGraphs, WaitsOfTheHostCannotBeCaptured) {
  begin();
  refused(cudaErrorStreamCaptureUnsupported, "cannot be captured", [&] { return cudaStreamSynchronize(a); });
  refused(cudaErrorStreamCaptureInvalidated, "cudaStreamSynchronize was called",
          [&] { return kernels.launch("append", 1, 1, 0, a, p, 1u); });
  refused(cudaErrorStreamCaptureInvalidated, "cudaStreamSynchronize was called", [&] { return end_result(); });
}

TEST_F(RuntimeGraphs, CopiesOfPageableMemoryCannotBeCaptured) {
  std::uint32_t own = 0, *pinned = allocate_pinned(1);
  begin();
  ok(cudaMemcpyAsync(pinned, p, 4, cudaMemcpyDeviceToHost, a));
  refused(cudaErrorStreamCaptureUnsupported, "cannot be captured",
          [&] { return cudaMemcpyAsync(&own, p, 4, cudaMemcpyDeviceToHost, a); });
  EXPECT_EQ(end_result(), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(RuntimeGraphs, CallsThatMayWaitAreAllowedInRelaxedModeOnly) {
  void* address = nullptr;
  begin(cudaStreamCaptureModeRelaxed);
  ok(cudaMalloc(&address, 4));
  end();
  begin(cudaStreamCaptureModeGlobal);
  refused(cudaErrorStreamCaptureUnsupported, "not in relaxed mode", [&] { return cudaMalloc(&address, 4); });
  refused(cudaErrorStreamCaptureInvalidated, "cudaMalloc was called", [&] { return end_result(); });
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([&] {
    cudaSetDevice(device_);
    ok(cudaMalloc(&address, 4));
  }).join();
  end();
}

TEST_F(RuntimeGraphs, ACaptureEndsWhereItBegan) {
  cudaGraph_t graph = nullptr;
  begin();
  refused(cudaErrorIllegalState, "captures already",
          [&] { return cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed); });
  order(a, b);
  refused(cudaErrorStreamCaptureUnmatched, "and ends on", [&] { return cudaStreamEndCapture(b, &graph); });
  EXPECT_EQ(end_result(), cudaErrorStreamCaptureInvalidated);
  refused(cudaErrorIllegalState, "does not capture", [&] { return end_result(); });
  refused(cudaErrorStreamCaptureUnsupported, "legacy default stream",
          [&] { return cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed); });
}

TEST_F(RuntimeGraphs, AnotherThreadCannotEndACapture) {
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([&] {
    refused(cudaErrorStreamCaptureWrongThread, "another thread", [&] { return end_result(); });
  }).join();
  end();
}

TEST_F(RuntimeGraphs, TheLegacyDefaultStreamWouldWaitForABlockingStream) {
  a = make_stream(cudaStreamDefault);
  begin();
  refused(cudaErrorStreamCaptureImplicit, "make that stream with cudaStreamNonBlocking",
          [&] { return kernels.launch("append", 1, 1, 0, nullptr, p, 1u); });
  EXPECT_EQ(end_result(), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(RuntimeGraphs, TwoCapturesDoNotMerge) {
  const cudaStream_t other = make_stream();
  begin();
  ok(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
  ok(cudaEventRecord(event, other));
  refused(cudaErrorStreamCaptureMerge, "two captures", [&] { return cudaStreamWaitEvent(a, event, 0); });
  EXPECT_EQ(end_result(), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(RuntimeGraphs, StatusIsReported) {
  cudaStreamCaptureStatus status{};
  ok(cudaStreamIsCapturing(a, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  begin();
  ok(cudaStreamIsCapturing(a, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamDestroy(a), cudaErrorStreamCaptureUnsupported);
  ok(cudaStreamIsCapturing(a, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  end_result();
  cudaGetLastError();
}

TEST_F(RuntimeGraphs, OfSeveralDevicesAndWithFlagsAreRefused) {
  begin();
  ok(cudaEventRecord(event, a));
  const int own = device_;
  RuntimeTest::SetUp(); // the next device is current
  const cudaStream_t other = make_stream();
  refused(cudaErrorNotSupported, "does not know graphs of several devices",
          [&] { return cudaStreamWaitEvent(other, event, 0); });
  ok(cudaSetDevice(own));
  append(1, a);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(a, &graph));
  cudaGraphExec_t exec = nullptr;
  refused(cudaErrorNotSupported, "the stand-in knows no flags of graphs",
          [&] { return cudaGraphInstantiate(&exec, graph, 1); });
  ok(cudaGraphInstantiate(&exec, graph, 0));
  refused(cudaErrorInvalidResourceHandle, "'s, and stream", [&] { return cudaGraphLaunch(exec, other); });
}

} // namespace
} // namespace triax::test
