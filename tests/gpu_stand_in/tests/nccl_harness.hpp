// SPDX-License-Identifier: Apache-2.0
// Two ranks of the NCCL stand-in: threads with a device each.
#pragma once

#include <nccl.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime_harness.hpp"

namespace triax::test {

/// Reports of calls that wait come after a tenth of a second.
struct ReportSoon {
  ReportSoon() { setenv("TRIAX_GPU_NCCL_REPORT_S", "0.1", 1); }
  ~ReportSoon() { unsetenv("TRIAX_GPU_NCCL_REPORT_S"); }
  ReportSoon(const ReportSoon&) = delete;
  ReportSoon& operator=(const ReportSoon&) = delete;
};

class Nccl : public RuntimeTest {
 protected:
  struct Rank {
    int number = 0;
    std::vector<ncclComm_t> comms;
    std::vector<cudaStream_t> streams; // one for each communicator
    ncclResult_t last_state = ncclSuccess;

    ncclResult_t state(int of = 0) {
      const ncclComm_t comm = comms[static_cast<std::size_t>(of)];
      if (comm) {
        EXPECT_EQ(ncclCommGetAsyncError(comm, &last_state), ncclSuccess);
      }
      return last_state;
    }
    /// Waits for the streams. A communicator with an error is aborted, because its calls may never end.
    cudaError_t finish() {
      cudaError_t first = cudaSuccess;
      for (const cudaStream_t each : streams) {
        cudaError_t error = cudaErrorNotReady;
        while ((error = cudaStreamQuery(each)) == cudaErrorNotReady) {
          abort_failed();
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (first == cudaSuccess) first = error;
      }
      return first;
    }
    void abort_failed() {
      for (int of = 0; of < static_cast<int>(comms.size()); ++of)
        if (comms[static_cast<std::size_t>(of)] && state(of) != ncclSuccess) abort(of);
    }
    void abort(int of = 0) {
      EXPECT_EQ(ncclCommAbort(std::exchange(comms[static_cast<std::size_t>(of)], nullptr)), ncclSuccess);
    }
  };

  void SetUp() override {
    for (int& each : devices_) {
      RuntimeTest::SetUp();
      each = device_;
    }
  }

  /// Runs two ranks in `count` communicators; returns what was printed.
  std::string run(int count, const std::function<void(Rank&)>& body) {
    std::vector<ncclUniqueId> ids(static_cast<std::size_t>(count));
    for (ncclUniqueId& id : ids) EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ::testing::internal::CaptureStderr();
    const auto run_one = [&](int number) {
      ok(cudaSetDevice(devices_[static_cast<std::size_t>(number)]));
      Rank rank;
      rank.number = number;
      for (const ncclUniqueId& id : ids) {
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, number, nullptr), ncclSuccess);
        rank.comms.push_back(comm);
        rank.streams.push_back(make_stream());
      }
      body(rank);
      for (const ncclComm_t comm : rank.comms)
        if (comm) ncclCommDestroy(comm);
    };
    std::thread second(run_one, 1);
    run_one(0);
    second.join();
    return ::testing::internal::GetCapturedStderr();
  }

  /// While run() captures stderr: waits until a message has `text`.
  static void wait_for_message(const std::string& text) {
    std::string printed;
    while (printed.find(text) == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::stringstream all;
      all << std::ifstream("/proc/self/fd/2").rdbuf(); // the file of the capture, from its begin
      printed = all.str();
    }
  }

  static float* filled(std::size_t count, float value) {
    auto* out = allocate<float>(count);
    const std::vector<float> host(count, value);
    ok(cudaMemcpy(out, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return out;
  }
  static std::vector<float> values_of(const float* from, std::size_t count) {
    std::vector<float> out(count);
    ok(cudaMemcpy(out.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));
    return out;
  }
  static ncclResult_t all_reduce(Rank& rank, float* data, std::size_t count, int of = 0) {
    const auto at = static_cast<std::size_t>(of);
    return ncclAllReduce(data, data, count, ncclFloat, ncclSum, rank.comms[at], rank.streams[at]);
  }

  std::array<int, 2> devices_{};
};

} // namespace triax::test
