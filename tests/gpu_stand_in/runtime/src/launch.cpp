// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <cstring>

#include "errors.hpp"
#include "gpu_stand_in/runtime.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

std::string text_of(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

void check_dimensions(const Function& function, const LaunchShape& shape) {
  const auto& [grid, block, shared] = shape;
  auto refuse = [&](const std::string& why) {
    throw CallError(cudaErrorInvalidConfiguration, "kernel " + function.name + ": " + why);
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) refuse("grid " + text_of(grid) + " has no block");
  if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) {
    refuse("grid " + text_of(grid) + " is larger than (2147483647, 65535, 65535)");
  }
  if (block.x > kMaxBlockXY || block.y > kMaxBlockXY || block.z > kMaxBlockZ) {
    refuse("block " + text_of(block) + " is larger than (1024, 1024, 64)");
  }
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > kMaxThreadsPerBlock) {
    refuse("block " + text_of(block) + " has " + std::to_string(threads) + " threads; 1 to 1024 are allowed");
  }
}

void check_shared(const Function& function, std::size_t dynamic) {
  const std::size_t limit = function.dynamic_shared_limit;
  if (dynamic > limit) {
    throw CallError(cudaErrorInvalidValue, "kernel " + function.name + ": " + std::to_string(dynamic) +
                                               " bytes of dynamic shared memory, and the limit is " +
                                               std::to_string(limit) +
                                               "; set cudaFuncAttributeMaxDynamicSharedMemorySize before the launch");
  }
  const std::size_t all = dynamic + function.static_shared_bytes();
  const std::size_t most = limit > kSharedBytes ? settings().shared_bytes : kSharedBytes;
  if (all > most) {
    throw CallError(cudaErrorInvalidValue, "kernel " + function.name + ": " + std::to_string(all) +
                                               " bytes of shared memory (" + std::to_string(dynamic) +
                                               " dynamic), and a block can have " + std::to_string(most));
  }
}

void check_resources(const Function& function, unsigned threads) {
  const Kernel& kernel = *function.kernel;
  if (kernel.max_threads.x != 0 && threads > kernel.max_threads.count()) {
    throw CallError(cudaErrorInvalidValue, "kernel " + function.name + ": " + std::to_string(threads) +
                                               " threads per block, and __launch_bounds__ allows " +
                                               std::to_string(kernel.max_threads.count()));
  }
  const int registers = registers_of_block(function.resources.registers, threads);
  if (registers > kRegistersPerBlock) {
    throw CallError(cudaErrorLaunchOutOfResources,
                    "kernel " + function.name + ": " + std::to_string(threads) + " threads of " +
                        std::to_string(function.resources.registers) + " registers need " + std::to_string(registers) +
                        " registers, and a block can have " + std::to_string(kRegistersPerBlock));
  }
}

BlockOrder block_order() {
  return settings().seed == 0 ? BlockOrder::kForward : BlockOrder::kSeeded;
}

void run_kernel(const Kernel& kernel, const LaunchedKernel& launched, const LaunchShape& shape,
                const std::vector<std::byte>& params, GpuDevice& device) {
  if (is_failure_planned("kernel", device.number())) {
    throw StreamError(cudaErrorLaunchFailure, "kernel " + kernel.name + ": fails, because TRIAX_GPU_FAIL says so");
  }
  static std::atomic<std::uint64_t> launches = 0;
  Profile counts;
  Launch launch;
  launch.kernel = &kernel;
  launch.grid = {shape.grid.x, shape.grid.y, shape.grid.z};
  launch.block = {shape.block.x, shape.block.y, shape.block.z};
  launch.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  launch.params = params;
  launch.order = block_order();
  launch.seed = settings().seed + ++launches;
  launch.threads = settings().threads;
  launch.profile = !settings().profile_file.empty();
  launch.counts = &counts;
  run(launch, device.memory());
  add_counts(launched, counts);
}

} // namespace

int registers_of_block(int registers_per_thread, unsigned threads) {
  constexpr unsigned kWarp = 32, kWarpUnit = 4, kRegisterUnit = 256; // registers are given to warps in units of 256
  const unsigned warps = (threads + kWarp - 1) / kWarp;
  const unsigned rounded_warps = (warps + kWarpUnit - 1) / kWarpUnit * kWarpUnit;
  const unsigned of_warp = (static_cast<unsigned>(registers_per_thread) * kWarp + kRegisterUnit - 1) / kRegisterUnit;
  return static_cast<int>(of_warp * kRegisterUnit * rounded_warps);
}

void check_shape(const Function& function, const LaunchShape& shape) {
  check_dimensions(function, shape);
  check_shared(function, shape.dynamic_shared_bytes);
  check_resources(function, shape.block.x * shape.block.y * shape.block.z);
}

void launch(const Function& function, const LaunchShape& shape, void** args, Stream& stream) {
  check_shape(function, shape);
  std::vector<std::byte> params(function.kernel->param_bytes);
  for (std::size_t n = 0; n < function.kernel->params.size(); ++n) {
    const Param& param = function.kernel->params[n];
    std::memcpy(&params[param.offset], args[n], param.bytes);
  }
  if (settings().log) {
    report("GPU " + std::to_string(stream.device().number()) + ", " + stream.name() + ": " + function.name + "<<<" +
           text_of(shape.grid) + ", " + text_of(shape.block) + ", " + std::to_string(shape.dynamic_shared_bytes) +
           ">>>");
  }
  LaunchedKernel launched{function.name, shape.block.x * shape.block.y * shape.block.z, function.resources.registers,
                          shape.dynamic_shared_bytes + function.static_shared_bytes()};
  submit(stream, {function.name,
                  [module = function.module, kernel = function.kernel, shape, params = std::move(params),
                   launched = std::move(launched), &device = stream.device()]() -> Poll {
                    run_kernel(*kernel, launched, shape, params, device);
                    return nullptr;
                  }});
}

} // namespace triax::gpu_stand_in
