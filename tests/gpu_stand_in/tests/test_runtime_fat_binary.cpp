// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's choice of PTX and machine code in fat binaries.
#include <elf.h>

#include "../runtime/src/fat_binary.hpp"
#include "runtime_harness.hpp"

namespace triax::test {
namespace {

constexpr std::uint16_t kPtx = FatBinaryBuilder::kPtx, kCubin = FatBinaryBuilder::kCubin;

// Writes `value` if it is launched.
std::string writer(std::uint32_t value) {
  return ptx_of(
      ".visible .entry write(.param .u64 p) { .reg .u64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], " +
      std::to_string(value) + "; ret; }");
}

// A cubin with the sections that ptxas writes for one kernel.
std::string cubin_of(const std::string& kernel, unsigned registers, std::size_t shared_bytes) {
  const std::string names = std::string(1, '\0') + ".text." + kernel + '\0' + ".nv.shared." + kernel + '\0';
  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_machine = 190;
  file.e_shoff = sizeof file;
  file.e_shnum = 3;
  std::array<Elf64_Shdr, 3> sections{};
  sections[0].sh_offset = sizeof file + sizeof sections; // of the names
  sections[1].sh_name = 1;
  sections[1].sh_info = registers << 24 | 5;
  sections[2].sh_name = static_cast<unsigned>(8 + kernel.size());
  sections[2].sh_size = shared_bytes;
  std::string bytes(reinterpret_cast<const char*>(&file), sizeof file);
  bytes.append(reinterpret_cast<const char*>(sections.data()), sizeof sections);
  return bytes + names;
}

class RuntimeFatBinary : public RuntimeTest {
 protected:
  cudaError_t write(LoadedKernels& kernels) {
    p_ = allocate(1);
    if (const cudaError_t error = kernels.launch("write", 1, 1, 0, nullptr, p_)) return error;
    return cudaDeviceSynchronize();
  }
  std::uint32_t* p_ = nullptr;
};

TEST_F(RuntimeFatBinary, PtxBesideMachineCodeRuns) {
  LoadedKernels kernels(FatBinaryBuilder().add(kCubin, 80, cubin_of("write", 24, 512)).add(kPtx, 80, writer(7)));
  ok(write(kernels));
  EXPECT_EQ(value_at(p_), 7u);
  cudaFuncAttributes a{};
  ok(cudaFuncGetAttributes(&a, kernels.find("write")));
  EXPECT_EQ(a.numRegs, 24);
  EXPECT_EQ(a.sharedSizeBytes, 512u);
}

TEST_F(RuntimeFatBinary, LaunchesThatNeedMoreThanABlockHasAreRefused) {
  LoadedKernels many(FatBinaryBuilder().add(kCubin, 80, cubin_of("write", 72, 0)).add(kPtx, 80, writer(7)));
  p_ = allocate(1);
  refused(cudaErrorLaunchOutOfResources,
          "1024 threads of 72 registers need 73728 registers, and a block can have 65536",
          [&] { return many.launch("write", 1, 1024, 0, nullptr, p_); });
  ok(many.launch("write", 1, 512, 0, nullptr, p_));
  LoadedKernels large(FatBinaryBuilder().add(kCubin, 80, cubin_of("write", 24, 49153)).add(kPtx, 80, writer(7)));
  refused(cudaErrorInvalidValue, "49153 bytes of shared memory (0 dynamic), and a block can have 49152",
          [&] { return large.launch("write", 1, 1, 0, nullptr, p_); });
}

TEST_F(RuntimeFatBinary, WithoutMachineCodeRegistersAreNotKnown) {
  LoadedKernels kernels(FatBinaryBuilder().add(kCubin, 90, cubin_of("write", 24, 0)).add(kPtx, 80, writer(7)));
  ok(write(kernels));
  cudaFuncAttributes a{};
  refused(cudaErrorNotSupported, "CMAKE_CUDA_ARCHITECTURES=80",
          [&] { return cudaFuncGetAttributes(&a, kernels.find("write")); });
}

TEST_F(RuntimeFatBinary, TheHighestPtxThatTheDeviceTakesRuns) {
  LoadedKernels kernels(
      FatBinaryBuilder().add(kPtx, 75, writer(75)).add(kPtx, 80, writer(80)).add(kPtx, 90, writer(90)));
  ok(write(kernels));
  EXPECT_EQ(value_at(p_), 80u);
}

TEST_F(RuntimeFatBinary, PtxOfLaterGpusOnlyIsRefused) {
  LoadedKernels kernels(FatBinaryBuilder().add(kPtx, 90, writer(90)));
  refused(cudaErrorNoKernelImageForDevice, "only: PTX 9.0; build with CMAKE_CUDA_ARCHITECTURES=80",
          [&] { return write(kernels); });
}

TEST_F(RuntimeFatBinary, CompressedPtxIsRefused) {
  for (const std::uint64_t flag : {FatBinaryBuilder::kLz4, FatBinaryBuilder::kZstd}) {
    LoadedKernels kernels(FatBinaryBuilder().add(kPtx, 80, writer(7), flag));
    refused(cudaErrorNoKernelImageForDevice, "--no-compress", [&] { return write(kernels); });
  }
}

TEST_F(RuntimeFatBinary, UnknownFormatsAreRefused) {
  std::string file = FatBinaryBuilder().add(kPtx, 80, writer(7)).bytes();
  const auto refuse = [](const std::string& bytes, const std::string& text) {
    try {
      gpu_stand_in::read_fat_binary(reinterpret_cast<const std::byte*>(bytes.data()), 80);
      ADD_FAILURE() << text;
    } catch (const gpu_stand_in::FatBinaryError& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(text));
    }
  };
  std::string other = file;
  other[0] = 'x';
  refuse(other, "of unknown format (magic number and version)");
  file[16 + 8] = '\x7F'; // the low byte of the size of the entry, behind the header of the file
  file[16 + 9] = '\x7F';
  refuse(file, "of unknown format (an entry is longer than the file)");
}

TEST_F(RuntimeFatBinary, RelocatableCodeIsRefused) {
  LoadedKernels kernels(FatBinaryBuilder().add(kPtx, 80, writer(7)), 2);
  refused(cudaErrorNoKernelImageForDevice, "-rdc=true", [&] { return write(kernels); });
}

TEST_F(RuntimeFatBinary, BrokenMachineCodeGivesNoRegisters) {
  std::string cut = cubin_of("write", 24, 0);
  cut.resize(80);
  LoadedKernels kernels(FatBinaryBuilder().add(kCubin, 80, cut).add(kPtx, 80, writer(7)));
  ok(write(kernels));
}

TEST_F(RuntimeFatBinary, UnknownPtxIsRefusedByName) {
  LoadedKernels kernels(".visible .entry write(.param .u64 p) { frobnicate.u32 %r1; ret; }");
  refused(cudaErrorInvalidPtx, "frobnicate", [&] { return write(kernels); });
}

TEST_F(RuntimeFatBinary, KernelsOfAnUnloadedLibraryAreNotKnown) {
  const void* host = nullptr;
  {
    LoadedKernels kernels(FatBinaryBuilder().add(kPtx, 80, writer(7)));
    host = kernels.find("write");
  }
  refused(cudaErrorInvalidDeviceFunction, "not a kernel",
          [&] { return cudaLaunchKernel(host, 1, 1, nullptr, 0, nullptr); });
}

TEST_F(RuntimeFatBinary, AKernelThatPtxDoesNotHaveIsRefused) {
  LoadedKernels kernels(FatBinaryBuilder().add(kPtx, 80, writer(7)));
  refused(cudaErrorInvalidDeviceFunction, "kernel other is not in the PTX",
          [&] { return kernels.launch("other", 1, 1, 0, nullptr); });
}

} // namespace
} // namespace triax::test
