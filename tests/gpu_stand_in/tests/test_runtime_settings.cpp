// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's environment variables: seeds, planned failures, devices. Each test runs in a separate
// process, because the environment is read once.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "../runtime/src/settings.hpp"
#include "runtime_harness.hpp"

namespace triax::test {
namespace {

class RuntimeSettings : public ::testing::Test {
 protected:
  RuntimeSettings() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using RuntimeSettingsDeathTest = RuntimeSettings;

// In the process of a death test: the code that says what was not as expected.
int require(std::initializer_list<bool> facts) {
  int number = 1;
  for (const bool fact : facts) {
    if (!fact) return number;
    ++number;
  }
  return 0;
}

TEST_F(RuntimeSettings, AreRead) {
  using namespace gpu_stand_in;
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("3K"), 3072u);
  EXPECT_EQ(parse_bytes("8G"), std::size_t{8} << 30);
  for (const char* text : {"", "K", "-1", "8GB", "8 G", "99999999999G"}) {
    EXPECT_THROW(parse_bytes(text), std::invalid_argument) << text;
  }
  const auto failures = parse_failures("cudaMalloc:3,kernel:1@2");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].call, "cudaMalloc");
  EXPECT_EQ(failures[0].number, 3u);
  EXPECT_EQ(failures[0].device, std::nullopt);
  EXPECT_EQ(failures[1].device, 2);
  for (const char* text : {"cudaMalloc", ":3", "cudaMalloc:", "cudaMalloc:0", "cudaMalloc:x", "a@1:2", "a:1@"}) {
    EXPECT_THROW(parse_failures(text), std::invalid_argument) << text;
  }
}

TEST_F(RuntimeSettingsDeathTest, InvalidOnesEndTheProcess) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_MEMORY", "much", 1);
        int count = 0;
        cudaGetDeviceCount(&count);
      },
      ::testing::ExitedWithCode(2), "TRIAX_GPU_MEMORY: \"much\" must be a number");
}

TEST_F(RuntimeSettingsDeathTest, InvalidOnesEndAProgramBeforeItRuns) {
  const auto start_with = [](const char* name, const char* value) {
    setenv(name, value, 1);
    execl("/proc/self/exe", "a program", "--gtest_list_tests", nullptr);
  };
  EXPECT_EXIT(start_with("TRIAX_GPU_MEMORY", "much"), ::testing::ExitedWithCode(2),
              "^\\[gpu stand-in\\] TRIAX_GPU_MEMORY: ");
  EXPECT_EXIT(start_with("TRIAX_GPU_HOST", "avx"), ::testing::ExitedWithCode(2), "TRIAX_GPU_HOST: \"avx\" must be");
  EXPECT_EXIT(start_with("TRIAX_GPU_SHARED_MEMORY", "228K"), ::testing::ExitedWithCode(2), "a size from 48K to 227K");
  EXPECT_EXIT(start_with("TRIAX_GPU_RDMA_WRITES", "1"), ::testing::ExitedWithCode(2), "must be ordered, flushed-by-w");
  EXPECT_EXIT(start_with("TRIAX_GPU_PRODUCTS", "0"), ::testing::ExitedWithCode(2), "must be computed or zero");
  EXPECT_EXIT(start_with("TRIAX_GPU_NCCL_REPORT_S", "0"), ::testing::ExitedWithCode(2), "must be a number of seconds");
  EXPECT_EXIT(start_with("TRIAX_GPU_NCCL_REPORT_S", "0.5"), ::testing::ExitedWithCode(0), "");
}

TEST_F(RuntimeSettingsDeathTest, WithoutDevicesCallsSaySo) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_DEVICES", "0", 1);
        int count = 1;
        void* p = nullptr;
        std::exit(require({cudaGetDeviceCount(&count) == cudaErrorNoDevice, count == 0,
                           cudaMalloc(&p, 4) == cudaErrorNoDevice, cudaSetDevice(0) == cudaErrorInvalidDevice}));
      },
      ::testing::ExitedWithCode(0), "");
}

// As on GPUs of compute capability 8.6, 8.9 and 12.x.
TEST_F(RuntimeSettingsDeathTest, ABlockHasTheChosenSharedMemory) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_SHARED_MEMORY", "99K", 1);
        LoadedKernels kernels(kSetAndAppend);
        constexpr int kBytes = 99 * 1024;
        const auto raise = [&](int bytes) {
          return cudaFuncSetAttribute(kernels.find("set"), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        };
        int most = 0;
        cudaDeviceProp properties{};
        void* p = nullptr;
        std::exit(require({cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess,
                           most == kBytes, cudaGetDeviceProperties(&properties, 0) == cudaSuccess,
                           properties.sharedMemPerBlockOptin == kBytes, cudaMalloc(&p, 4) == cudaSuccess,
                           raise(kBytes + 1) == cudaErrorInvalidValue, raise(kBytes) == cudaSuccess,
                           kernels.launch("set", 1, 1, kBytes, nullptr, p, 1u) == cudaSuccess,
                           cudaDeviceSynchronize() == cudaSuccess}));
      },
      ::testing::ExitedWithCode(0), "101377 bytes of dynamic shared memory, and a block can have 101376");
}

TEST_F(RuntimeSettingsDeathTest, TheChosenAllocationFails) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_FAIL", "cudaMalloc:2,cudaMalloc:2@1,cudaHostAlloc:1", 1);
        void* p = nullptr;
        std::exit(require({cudaMalloc(&p, 4) == cudaSuccess, cudaMalloc(&p, 4) == cudaErrorMemoryAllocation,
                           cudaMalloc(&p, 4) == cudaSuccess, cudaSetDevice(1) == cudaSuccess,
                           cudaMalloc(&p, 4) == cudaSuccess, cudaMalloc(&p, 4) == cudaErrorMemoryAllocation,
                           cudaMallocHost(&p, 4) == cudaErrorMemoryAllocation}));
      },
      ::testing::ExitedWithCode(0), "cudaMalloc: this call fails, because TRIAX_GPU_FAIL says so");
}

TEST_F(RuntimeSettingsDeathTest, TheChosenKernelAndCopyFail) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_FAIL", "kernel:2,copy:1@1,cudaLaunchKernel:4", 1);
        LoadedKernels kernels(kSetAndAppend);
        void* p = nullptr;
        std::uint32_t own = 0;
        auto run = [&] {
          const cudaError_t error = kernels.launch("set", 1, 1, 0, nullptr, p, 1u);
          return error ? error : cudaDeviceSynchronize();
        };
        const bool malloced = cudaMalloc(&p, 4) == cudaSuccess;
        std::exit(require({malloced, run() == cudaSuccess, run() == cudaErrorLaunchFailure,
                           run() == cudaErrorLaunchFailure, cudaSetDevice(1) == cudaSuccess,
                           cudaMalloc(&p, 4) == cudaSuccess, run() == cudaErrorLaunchOutOfResources,
                           cudaMemcpy(p, &own, 4, cudaMemcpyHostToDevice) == cudaErrorIllegalAddress}));
      },
      ::testing::ExitedWithCode(0), "kernel set: fails, because TRIAX_GPU_FAIL says so");
}

// Copies 1 and 2 to the same place on two streams, ordered by an event or not, many times. Returns the values that
// were there at the end. (Kernels that run at the same time would be found out by the checks of hazards.)
std::vector<std::uint32_t> copy_on_two_streams(bool ordered) {
  cudaStream_t streams[2];
  cudaEvent_t event = nullptr;
  void *p = nullptr, *pinned = nullptr;
  for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreate(&event);
  cudaMalloc(&p, 4);
  cudaMallocHost(&pinned, 8);
  auto* values = static_cast<std::uint32_t*>(pinned);
  values[0] = 1;
  values[1] = 2;
  std::vector<std::uint32_t> seen;
  for (int n = 0; n < 60; ++n) {
    std::uint32_t value = 0;
    cudaMemcpyAsync(p, values, 4, cudaMemcpyHostToDevice, streams[0]);
    cudaEventRecord(event, streams[0]);
    if (ordered) cudaStreamWaitEvent(streams[1], event, 0);
    cudaMemcpyAsync(p, values + 1, 4, cudaMemcpyHostToDevice, streams[1]);
    cudaDeviceSynchronize();
    cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
  }
  return seen;
}

TEST_F(RuntimeSettingsDeathTest, ASeedBringsAboutOrdersThatNothingForbids) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_SEED", "7", 1);
        std::exit(require({copy_on_two_streams(false).size() == 2}));
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_SEED", "7", 1);
        std::exit(require({copy_on_two_streams(true) == std::vector<std::uint32_t>{2}}));
      },
      ::testing::ExitedWithCode(0), "");
}

// The values that two branches of a graph leave, of which each appends a digit.
std::set<std::uint32_t> orders_of_two_nodes() {
  LoadedKernels kernels(kSetAndAppend);
  cudaStream_t streams[2];
  cudaEvent_t events[2];
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* p = nullptr;
  for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (auto& event : events) cudaEventCreate(&event);
  cudaMalloc(&p, 4);
  cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed);
  cudaEventRecord(events[0], streams[0]);
  cudaStreamWaitEvent(streams[1], events[0], 0);
  for (std::uint32_t n = 0; n < 2; ++n) kernels.launch("append", 1, 1, 0, streams[n], p, n + 1);
  cudaEventRecord(events[1], streams[1]);
  cudaStreamWaitEvent(streams[0], events[1], 0);
  cudaStreamEndCapture(streams[0], &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  std::set<std::uint32_t> seen;
  for (int n = 0; n < 40; ++n) {
    std::uint32_t value = 0;
    cudaMemset(p, 0, 4);
    cudaDeviceSynchronize();
    cudaGraphLaunch(exec, streams[0]);
    cudaDeviceSynchronize();
    cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    seen.insert(value);
  }
  return seen;
}

// For each of 64 blocks, how many blocks ran before it.
std::vector<std::uint32_t> turns_of_blocks(LoadedKernels& kernels) {
  constexpr unsigned kBlocks = 64;
  std::vector<std::uint32_t> turns(kBlocks + 1);
  void* p = nullptr;
  cudaMalloc(&p, turns.size() * 4);
  cudaMemset(p, 0, turns.size() * 4);
  kernels.launch("turns", kBlocks, 1, 0, nullptr, p);
  cudaMemcpy(turns.data(), p, turns.size() * 4, cudaMemcpyDeviceToHost);
  return {turns.begin() + 1, turns.end()}; // the first is the counter
}

constexpr const char* kTurns = R"(
.visible .entry turns(.param .u64 p) {
  .reg .u64 %rd<4>; .reg .u32 %r<3>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
  atom.global.add.u32 %r2, [%rd1], 1; st.global.u32 [%rd3+4], %r2; ret;
}
)";

TEST_F(RuntimeSettingsDeathTest, ASeedChoosesOrdersOfGraphNodesAndBlocks) {
  const auto seed = [](const char* text) {
    setenv("TRIAX_GPU_SEED", text, 1);
    setenv("TRIAX_GPU_THREADS", "1", 1);
  };
  EXPECT_EXIT(
      {
        seed("7");
        LoadedKernels kernels(kTurns);
        const auto first = turns_of_blocks(kernels);
        const auto second = turns_of_blocks(kernels);
        std::exit(require({orders_of_two_nodes() == std::set<std::uint32_t>{12, 21}, !std::ranges::is_sorted(first),
                           !std::ranges::is_sorted(second), first != second,
                           std::set(first.begin(), first.end()).size() == first.size()}));
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        seed("0");
        LoadedKernels kernels(kTurns);
        const auto first = turns_of_blocks(kernels);
        std::exit(require({orders_of_two_nodes() == std::set<std::uint32_t>{21}, std::ranges::is_sorted(first)}));
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(RuntimeSettingsDeathTest, ADriverCanLackWaitsForValues) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_WAIT_VALUES", "0", 1);
        void* found = nullptr;
        cudaDriverEntryPointQueryResult state{};
        cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault, &state);
        std::exit(require({found == nullptr, state == cudaDriverEntryPointSymbolNotFound}));
      },
      ::testing::ExitedWithCode(0), "");
}

// In the process of a death test: the ordering, the options to flush, and whether a wait with a flush is accepted.
struct RdmaOfDevice {
  int ordering = -1, options = -1;
  CUresult result = CUDA_ERROR_UNKNOWN;
};
RdmaOfDevice rdma_of_device(const char* writes) {
  setenv("TRIAX_GPU_RDMA_WRITES", writes, 1);
  RdmaOfDevice rdma;
  cudaDeviceGetAttribute(&rdma.ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, 0);
  cudaDeviceGetAttribute(&rdma.options, cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0);
  void *found = nullptr, *pinned = nullptr;
  cudaDriverEntryPointQueryResult state{};
  cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault, &state);
  cudaHostAlloc(&pinned, sizeof(std::uint32_t), cudaHostAllocDefault);
  *static_cast<std::uint32_t*>(pinned) = 1;
  rdma.result = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(found)(
      nullptr, reinterpret_cast<CUdeviceptr>(pinned), 1, CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH);
  return rdma;
}

TEST_F(RuntimeSettingsDeathTest, WritesOfNetworkCardsAreOrderedOrFlushed) {
  EXPECT_EXIT(
      {
        const RdmaOfDevice rdma = rdma_of_device("ordered");
        std::exit(
            require({rdma.ordering == cudaGPUDirectRDMAWritesOrderingOwner,
                     rdma.options == cudaFlushGPUDirectRDMAWritesOptionHost, rdma.result == CUDA_ERROR_NOT_SUPPORTED}));
      },
      ::testing::ExitedWithCode(0), "CU_STREAM_WAIT_VALUE_FLUSH needs a device whose waits flush");
  EXPECT_EXIT(
      {
        const RdmaOfDevice rdma = rdma_of_device("flushed-by-waits");
        std::exit(require(
            {rdma.ordering == cudaGPUDirectRDMAWritesOrderingNone,
             rdma.options == (cudaFlushGPUDirectRDMAWritesOptionHost | cudaFlushGPUDirectRDMAWritesOptionMemOps),
             rdma.result == CUDA_SUCCESS, cudaDeviceSynchronize() == cudaSuccess}));
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        const RdmaOfDevice rdma = rdma_of_device("flushed-by-host");
        std::exit(
            require({rdma.ordering == cudaGPUDirectRDMAWritesOrderingNone,
                     rdma.options == cudaFlushGPUDirectRDMAWritesOptionHost, rdma.result == CUDA_ERROR_NOT_SUPPORTED}));
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(RuntimeSettingsDeathTest, TheLogNamesLaunches) {
  EXPECT_EXIT(
      {
        setenv("TRIAX_GPU_LOG", "1", 1);
        LoadedKernels kernels(kSetAndAppend);
        void* p = nullptr;
        cudaMalloc(&p, 4);
        kernels.launch("set", dim3(2, 1, 1), dim3(32, 1, 1), 16, nullptr, p, 1u);
        cudaDeviceSynchronize();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "GPU 0, .*: set<<<\\(2, 1, 1\\), \\(32, 1, 1\\), 16>>>");
}

// Each kind of exit, because triax ends with _Exit(), which runs no exit handlers.
TEST_F(RuntimeSettingsDeathTest, CountsAndProfileAreWrittenAtEachKindOfExit) {
  constexpr const char* kName = "TRIAX_GPU_PROFILE";
  const bool is_child = std::getenv(kName) != nullptr; // the process of a death test runs this test from its begin
  const std::string file =
      is_child ? std::getenv(kName) : ::testing::TempDir() + "gpu-stand-in-profile-" + std::to_string(getpid());
  setenv(kName, file.c_str(), 1);
  using End = void (*)(int);
  for (const End end : {End{std::_Exit}, End{std::exit}}) {
    EXPECT_EXIT(
        {
          setenv("TRIAX_GPU_COUNTS", "1", 1);
          LoadedKernels kernels(kSetAndAppend);
          void* p = nullptr;
          cudaMalloc(&p, 4);
          kernels.launch("set", 1, 1, 0, nullptr, p, 1u);
          cudaMemset(p, 0, 4);
          cudaDeviceSynchronize();
          end(3);
        },
        ::testing::ExitedWithCode(3), "1 launches, 1 blocks, 4 warp instructions, 0 mma instructions");
    if (is_child) continue;
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_THAT(text.str(), ::testing::StartsWith("{\"kernel\": \"set\", \"launches\": 1, \"blocks\": 1, "));
    EXPECT_THAT(text.str(), ::testing::HasSubstr("\"threads\": 1, "));
    EXPECT_THAT(text.str(), ::testing::HasSubstr("\"kinds\": {\"mma\": 0, \"global\": 1, "));
    EXPECT_THAT(text.str(),
                ::testing::EndsWith("{\"call\": \"cudaMemset\", \"launches\": 1, \"flops\": 0, \"bytes\": 4}\n"));
    EXPECT_EQ(std::ranges::count(text.str(), '\n'), 2) << text.str();
    std::filesystem::remove(file);
  }
  unsetenv(kName);
}

} // namespace
} // namespace triax::test
