// SPDX-License-Identifier: Apache-2.0
// NCCL itself, with one rank on this machine's GPU. Tests with several ranks use the fake NCCL of fake_nccl.hpp, or are
// in the other test files for GPUs.
#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "backend.hpp"
#include "control/job_local_store.hpp"
#include "handle.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::comm_nccl {
namespace {

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    device_ = cuda::make_device({});
    stream_ = device_->make_stream("main");
    memory_ = device_->allocate(4096, MemoryKind::device);
    pinned_ = device_->allocate(4096, MemoryKind::pinned);
  }

  static ncclConfig_t config() {
    ncclConfig_t out = NCCL_CONFIG_INITIALIZER;
    out.blocking = 0;
    return out;
  }
  std::unique_ptr<Handle> alone() {
    ncclUniqueId id;
    check(api_, api_.get_unique_id(&id), "ncclGetUniqueId", "test");
    auto handle = std::make_unique<Handle>(api_, "a communicator of one");
    handle->begin(id, 1, 0, config());
    handle->wait_until_complete("ncclCommInitRankConfig", turn_);
    return handle;
  }
  TensorView view(int at) { return {static_cast<float*>(memory_->data()) + 16 * at, DType::f32, {4}}; }
  TensorView host(int at) { return {static_cast<float*>(pinned_->data()) + 16 * at, DType::f32, {4}}; }
  void put(int at, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), host(at).as<float>());
    device_->upload(view(at), host(at), *stream_);
  }
  std::vector<float> get(int at) {
    device_->download(host(at), view(at), *stream_);
    device_->wait(stream_->record(), deadline_in(60));
    return {host(at).as<float>(), host(at).as<float>() + 4};
  }

  const NcclApi& api_ = linked_api();
  const std::function<void()> turn_ = [] { sched_yield(); };
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_, pinned_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(OnGpu, ReducesAlone) {
  const std::unique_ptr<Handle> handle = alone();
  put(0, {1, 2, 3, 4});
  const cudaStream_t native = api_.launch_stream(*stream_);
  EXPECT_TRUE(handle->launch(
      "ncclAllReduce", native,
      [&](ncclComm_t comm) {
        return api_.all_reduce(view(0).data(), view(1).data(), 4, ncclFloat32, ncclSum, comm, native);
      },
      turn_));
  EXPECT_EQ(get(1), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_FALSE(handle->busy());
  std::string why;
  EXPECT_EQ(handle->state(why), ncclSuccess) << why;
  handle->finish(deadline_in(60));
}

TEST_F(OnGpu, SendsToItselfInOneGroup) {
  const std::unique_ptr<Handle> handle = alone();
  put(0, {5, 6, 7, 8});
  const cudaStream_t native = api_.launch_stream(*stream_);
  EXPECT_TRUE(handle->launch_set(
      native,
      [&](ncclComm_t comm) {
        const ncclResult_t sent = api_.send(view(0).data(), 4, ncclFloat32, 0, comm, native);
        return sent == ncclSuccess ? api_.recv(view(1).data(), 4, ncclFloat32, 0, comm, native) : sent;
      },
      turn_));
  EXPECT_EQ(get(1), (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(OnGpu, SplitsAndRegisters) {
  const std::unique_ptr<Handle> handle = alone();
  Handle part(api_, "a part"), none(api_, "none");
  handle->begin_split(part, 3, 0, config());
  handle->wait_until_complete("ncclCommSplit", turn_);
  part.wait_until_complete("ncclCommSplit", turn_);
  handle->begin_split(none, -1, 0, config());
  handle->wait_until_complete("ncclCommSplit", turn_);
  part.register_block(memory_->data(), memory_->bytes());
  put(0, {1, 1, 2, 2});
  const cudaStream_t native = api_.launch_stream(*stream_);
  EXPECT_TRUE(part.launch(
      "ncclBroadcast", native,
      [&](ncclComm_t comm) { return api_.broadcast(view(0).data(), view(1).data(), 4, ncclFloat32, 0, comm, native); },
      turn_));
  EXPECT_EQ(get(1), (std::vector<float>{1, 1, 2, 2}));
  part.finish(deadline_in(60));
  handle->finish(deadline_in(60));
}

TEST_F(OnGpu, SeveralCommunicatorsWorkOnSeveralStreams) {
  std::vector<std::unique_ptr<Handle>> handles;
  std::vector<std::unique_ptr<Stream>> streams;
  put(0, {1, 2, 3, 4});
  device_->wait(stream_->record(), deadline_in(60));
  for (int i = 0; i < 4; ++i) {
    handles.push_back(alone());
    streams.push_back(device_->make_stream("one"));
    const cudaStream_t native = api_.launch_stream(*streams.back());
    handles.back()->launch(
        "ncclAllGather", native,
        [&](ncclComm_t comm) {
          return api_.all_gather(view(0).data(), view(i + 1).data(), 4, ncclFloat32, comm, native);
        },
        turn_);
  }
  for (const auto& stream : streams) device_->wait(stream->record(), deadline_in(60));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get(i + 1), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(OnGpu, IsUsedNoMoreAfterAnAbort) {
  const std::unique_ptr<Handle> handle = alone();
  handle->abort();
  EXPECT_FALSE(handle->launch(
      "ncclAllReduce", nullptr, [](ncclComm_t) { return ncclSuccess; }, turn_));
}

TEST_F(OnGpu, TheBackendReducesAlone) {
  Options options;
  for (const triax_option& option : kOptions) options.set(option.name, false);
  const Layout layout = Layout::ptd(1, 1, 1);
  NcclBackend backend({options, null_log(), layout, 0, 1}, api_);
  backend.start(*device_);
  control::LocalStore store;
  const std::unique_ptr<Communicator> comm = backend.join(layout.world_group(0), store, deadline_in(60));
  put(0, {9, 8, 7, 6});
  device_->wait(comm->all_reduce(view(0), view(1), Reduce::sum, *stream_), deadline_in(60));
  EXPECT_EQ(get(1), (std::vector<float>{9, 8, 7, 6}));
}

/// cudaEventQuery() returns cudaErrorNotReady and also leaves it as CUDA's last error, where the next launch check
/// would find it.
TEST_F(OnGpu, AnEventThatIsNotDoneLeavesNoError) {
  HostEvent host_work;
  stream_->wait(host_work.arm());
  void* event = api_.make_event();
  api_.record_event(event, api_.launch_stream(*stream_));
  EXPECT_FALSE(api_.event_done(event));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  host_work.fire();
  device_->wait(stream_->record(), deadline_in(60));
  EXPECT_TRUE(api_.event_done(event));
  api_.free_event(event);
}

} // namespace
} // namespace triax::comm_nccl
