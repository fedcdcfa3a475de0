// SPDX-License-Identifier: Apache-2.0
// The fake finds what would hang or corrupt NCCL. The tests call its table directly, as a faulty backend would.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake_nccl.hpp"
#include "support/fake_cuda_device.hpp"
#include "triax/error.hpp"

namespace triax::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A process with its GPU, communicators and some memory.
class Process {
 public:
  explicit Process(int rank)
      : rank_(rank), device_(made(rank)), stream_(device_->make_stream("main")), other_(device_->make_stream("other")) {
    memory_ = device_->allocate(4096, MemoryKind::device);
    device_->fill({memory_->data(), DType::u8, {4096}}, 0, *stream_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    for (const ncclComm_t comm : comms_) api.comm_abort(comm);
  }

  ncclComm_t begin(const ncclUniqueId& id, int size) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    comms_.push_back(nullptr);
    EXPECT_EQ(api.comm_init_rank_config(&comms_.back(), size, id, rank_, &config), ncclInProgress);
    return comms_.back();
  }
  ncclComm_t make(const ncclUniqueId& id, int size) {
    const ncclComm_t comm = begin(id, size);
    wait_until_complete(comm);
    return comm;
  }
  static void wait_until_complete(ncclComm_t comm) {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress; std::this_thread::yield())
      fake_nccl().comm_get_async_error(comm, &state);
  }
  cudaStream_t native() { return api.launch_stream(*stream_); }
  cudaStream_t other() { return api.launch_stream(*other_); }
  void* data(int at = 0) { return static_cast<std::byte*>(memory_->data()) + 512 * at; }
  int rank() const { return rank_; }
  void forget(ncclComm_t comm) { std::erase(comms_, comm); }

  const triax::comm_nccl::NcclApi& api = fake_nccl();

 private:
  static std::unique_ptr<Device> made(int rank) {
    enter({.rank = rank, .gpu = text("GPU {}", rank)});
    return make_fake_cuda_device(static_cast<std::uint64_t>(rank));
  }
  int rank_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_, other_;
  std::vector<ncclComm_t> comms_;
};

ncclUniqueId id_of(const char* name) {
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, "%s", name);
  return id;
}

/// Each process is a thread that runs a body; kernels run when their stream reaches them and they may begin.
class FakeNccl : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void processes(int count, const std::function<void(Process&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank)
      threads.emplace_back([&body, rank] {
        Process process(rank);
        body(process);
      });
    for (std::thread& thread : threads) thread.join();
  }
};

/// Waits until all threads have called, so that the second call has been compared with the first.
class GroupHandles {
 public:
  explicit GroupHandles(int count) : count_(count) {}
  void operator()() {
    ++come_;
    while (come_ < count_) std::this_thread::yield();
  }

 private:
  const int count_;
  std::atomic<int> come_{0};
};

TEST_F(FakeNccl, FindsDifferentCountsTypesOperationsAndRoots) {
  const std::vector<std::function<void(Process&, ncclComm_t)>> odd = {
      [](Process& p, ncclComm_t c) { p.api.all_reduce(p.data(), p.data(), 9, ncclFloat32, ncclSum, c, p.native()); },
      [](Process& p, ncclComm_t c) { p.api.all_reduce(p.data(), p.data(), 8, ncclInt32, ncclSum, c, p.native()); },
      [](Process& p, ncclComm_t c) { p.api.all_reduce(p.data(), p.data(), 8, ncclFloat32, ncclMax, c, p.native()); },
      [](Process& p, ncclComm_t c) { p.api.broadcast(p.data(), p.data(), 8, ncclFloat32, 0, c, p.native()); },
      [](Process& p, ncclComm_t c) { p.api.all_gather(p.data(), p.data(1), 8, ncclFloat32, c, p.native()); }};
  for (const auto& call : odd) {
    reset();
    GroupHandles joined(2);
    processes(2, [&](Process& process) {
      const ncclComm_t comm = process.make(id_of("a"), 2);
      if (process.rank() == 1) {
        call(process, comm);
      } else {
        process.api.all_reduce(process.data(), process.data(), 8, ncclFloat32, ncclSum, comm, process.native());
      }
      joined();
    });
    EXPECT_THAT(violations(), ElementsAre(HasSubstr(" meets "))) << &call - odd.data();
  }
}

TEST_F(FakeNccl, FindsDifferentRoots) {
  GroupHandles joined(2);
  processes(2, [&](Process& process) {
    const ncclComm_t comm = process.make(id_of("a"), 2);
    process.api.broadcast(process.data(), process.data(), 8, ncclFloat32, process.rank(), comm, process.native());
    joined();
  });
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("meets broadcast of 8 f32 from member")));
}

TEST_F(FakeNccl, FindsTransfersOfOtherCounts) {
  GroupHandles joined(2);
  processes(2, [&](Process& process) {
    const ncclComm_t comm = process.make(id_of("a"), 2);
    if (process.rank() == 0) process.api.send(process.data(), 6, ncclFloat32, 1, comm, process.native());
    if (process.rank() == 1) process.api.recv(process.data(), 5, ncclFloat32, 0, comm, process.native());
    joined();
  });
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("from member 0 to member 1")));
}

/// Both send first, and then receive; without a group, each send waits for a receive that comes later.
TEST_F(FakeNccl, FindsTransfersThatNeedAGroup) {
  for (const bool in_group : {true, false}) {
    reset();
    GroupHandles joined(2), connected(2);
    processes(2, [&](Process& process) {
      const ncclComm_t comm = process.make(id_of("a"), 2);
      const int peer = 1 - process.rank();
      process.api.group_start(); // connects them
      process.api.send(process.data(), 4, ncclFloat32, peer, comm, process.native());
      process.api.recv(process.data(1), 4, ncclFloat32, peer, comm, process.native());
      process.api.group_end();
      Process::wait_until_complete(comm);
      connected();
      if (in_group) process.api.group_start();
      process.api.send(process.data(), 4, ncclFloat32, peer, comm, process.native());
      process.api.recv(process.data(1), 4, ncclFloat32, peer, comm, process.native());
      if (in_group) process.api.group_end();
      joined();
    });
    if (in_group) {
      EXPECT_THAT(violations(), IsEmpty());
    } else {
      EXPECT_THAT(violations(), Contains(HasSubstr("would hang")));
    }
  }
}

/// NCCL does not guarantee that kernels of two communicators run at the same time.
TEST_F(FakeNccl, FindsAnOrderOverCommunicatorsThatWouldHang) {
  for (const bool one_kernel_a_gpu : {true, false}) {
    reset({.one_kernel_a_gpu = one_kernel_a_gpu});
    GroupHandles joined(2);
    processes(2, [&](Process& process) {
      const ncclComm_t a = process.make(id_of("a"), 2), b = process.make(id_of("b"), 2);
      const auto reduce = [&](ncclComm_t comm, int at, cudaStream_t stream) {
        process.api.all_reduce(process.data(at), process.data(at), 4, ncclFloat32, ncclSum, comm, stream);
      };
      reduce(process.rank() == 0 ? a : b, 0, process.native());
      reduce(process.rank() == 0 ? b : a, 1, process.other());
      joined();
    });
    if (one_kernel_a_gpu) {
      EXPECT_THAT(violations(), Contains(HasSubstr("would hang")));
    } else {
      EXPECT_THAT(violations(), IsEmpty());
    }
  }
}

TEST_F(FakeNccl, FindsUseWhileInProgressAndAfterTheEnd) {
  processes(1, [&](Process& process) {
    const ncclComm_t early = process.begin(id_of("never"), 2);
    process.api.all_reduce(process.data(), process.data(), 4, ncclFloat32, ncclSum, early, process.native());
    const ncclComm_t late = process.make(id_of("alone"), 1);
    process.api.comm_abort(late);
    process.forget(late);
    process.api.all_reduce(process.data(), process.data(), 4, ncclFloat32, ncclSum, late, process.native());
    process.api.comm_abort(late);
    process.api.group_end();
  });
  EXPECT_THAT(violations(),
              ElementsAre("ncclAllReduce on a communicator that is in progress",
                          "ncclAllReduce on a communicator that has ended",
                          "ncclCommAbort on a communicator that has ended", "ncclGroupEnd without ncclGroupStart"));
}

TEST_F(FakeNccl, AbortsAfterEarlierWorkOfTheStreamEnds) {
  processes(2, [&](Process& process) {
    const ncclComm_t before = process.make(id_of("a"), 2), behind = process.make(id_of("b"), 2);
    if (process.rank() == 1) return;
    for (const ncclComm_t comm : {before, behind})
      process.api.all_reduce(process.data(), process.data(), 4, ncclFloat32, ncclSum, comm, process.native());
    std::atomic<bool> may_go{false};
    std::thread last([&] {
      process.api.comm_abort(behind);
      EXPECT_TRUE(may_go);
    });
    while (counts().aborts < 1) std::this_thread::yield();
    may_go = true;
    process.api.comm_abort(before);
    last.join();
    process.forget(before);
    process.forget(behind);
  });
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(FakeNccl, FindsMemoryOfTheHost) {
  processes(1, [&](Process& process) {
    const ncclComm_t comm = process.make(id_of("alone"), 1);
    float host[4] = {};
    process.api.group_start();
    process.api.all_reduce(host, host, 0, ncclFloat32, ncclSum, comm, process.native());
    process.api.comm_abort(comm);
    process.forget(comm);
  });
  EXPECT_THAT(violations(), Contains("ncclAllReduce with memory of the host"));
}

TEST_F(FakeNccl, ReportsACommunicatorDestroyedWithAnUnmatchedSend) {
  GroupHandles joined(2);
  processes(2, [&](Process& process) {
    const ncclComm_t comm = process.make(id_of("a"), 2);
    joined();
    if (process.rank() == 1) return;
    process.api.send(process.data(), 4, ncclFloat32, 1, comm, process.native());
    process.api.comm_destroy(comm);
  });
  EXPECT_THAT(violations(), Contains(HasSubstr("ncclCommDestroy on a communicator")));
}

TEST_F(FakeNccl, RefusesTwoRanksOnOneGpu) {
  processes(2, [&](Process& process) {
    enter({.rank = process.rank(), .gpu = "the only one"});
    const ncclComm_t comm = process.begin(id_of("a"), 2);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) process.api.comm_get_async_error(comm, &state);
    EXPECT_EQ(state, ncclInvalidUsage);
    EXPECT_STREQ(process.api.get_last_error(comm), "Duplicate GPU detected");
  });
}

} // namespace
} // namespace triax::test
