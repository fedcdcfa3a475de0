// SPDX-License-Identifier: Apache-2.0
// Fat binaries, which nvcc embeds in programs: PTX and machine code (cubins) for several GPUs.
//
// The format is not documented. It is what nvcc 11 to 13 write: a header (magic number, version, bytes of the header,
// bytes of the rest), then entries, each with a separate header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace triax::gpu_stand_in {

// The message says what to change in the build.
struct FatBinaryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What ptxas needed for a kernel.
struct KernelResources {
  int registers = 0; // of a thread
  std::size_t shared_bytes = 0;
};

struct FatBinary {
  std::string_view ptx;                                          // in the fat binary
  int architecture = 0;                                          // of the PTX: 80
  std::map<std::string, KernelResources, std::less<>> resources; // empty: there is no cubin for this GPU
};

// Chooses the PTX of the highest architecture up to `architecture`, and the cubin of the same GPU generation. Throws
// FatBinaryError if there is no PTX that can be used.
FatBinary read_fat_binary(const std::byte* data, int architecture);
// Registers and shared memory of each kernel. Empty if the bytes are not a cubin.
std::map<std::string, KernelResources, std::less<>> read_cubin(std::span<const std::byte> cubin);

} // namespace triax::gpu_stand_in
