// SPDX-License-Identifier: Apache-2.0
// The hint for an undefined symbol names the library that defines it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plugin/loader.hpp"
#include "plugin/missing_symbol.hpp"
#include "scratch.hpp"

namespace triax::plugin {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(MissingSymbol, ALibraryOfTheEngineThatHasItIsNamed) {
  const std::string event = "_ZN5triax9OptimizerD1Ev"; // triax::Optimizer::~Optimizer()
  EXPECT_EQ(link_hint(event, "optim-mine", core_folder()),
            "libtriax_core.so exports it; link it: triax_add_plugin(optim-mine SOURCES ... LINK triax::core)");
}

TEST(MissingSymbol, AnotherLibraryIsKnownByThePrefix) {
  const Scratch nothing;
  const auto hint = [&](const char* symbol) { return link_hint(symbol, "comm-mine", nothing.folder()); };
  EXPECT_EQ(hint("ncclAllReduce"),
            "by its name, it belongs to NCCL (libnccl.so); link it: triax_add_plugin(comm-mine SOURCES ... LINK nccl)");
  EXPECT_THAT(hint("cudaMalloc"), HasSubstr("CUDA::cudart"));
  EXPECT_THAT(hint("__cudaRegisterFunction"), HasSubstr("CUDA::cudart"));
  EXPECT_THAT(hint("cublasLtMatmul"), HasSubstr("CUDA::cublasLt)"));
  EXPECT_THAT(hint("cublasCreate_v2"), HasSubstr("CUDA::cublas)"));
  EXPECT_THAT(hint("ucp_put_nbx"), HasSubstr("LINK ucp)"));
  EXPECT_THAT(hint("dnnl_engine_create"), HasSubstr("DNNL::dnnl"));
  EXPECT_THAT(hint("MPI_Init"), HasSubstr("MPI::MPI_CXX"));
  EXPECT_THAT(hint("_ZN5triax3p2p4joinEv"), HasSubstr("LINK triax::p2p)"));
  EXPECT_THAT(hint("_ZTVN5triax4cuda10PrimitivesE"), HasSubstr("LINK triax::cuda_primitives)"));
}

TEST(MissingSymbol, OneThatNoLibraryHasIsReported) {
  const Scratch nothing;
  EXPECT_EQ(link_hint("_ZN4mine6helperEi", "comm-mine", nothing.folder()),
            "no library of this triax exports it: add the source file that defines it to SOURCES, or the library to "
            "LINK: triax_add_plugin(comm-mine SOURCES ... LINK ...)");
  EXPECT_THAT(link_hint("cudaish_thing", "comm-mine", nothing.folder()), StartsWith("no library of this triax"));
  EXPECT_EQ(link_hint("_ZN5triax4goneEv", "comm-mine", nothing.folder()),
            "no library of this triax exports it: rebuild the plugin against the headers of this triax");
}

TEST(MissingSymbol, IgnoresFilesThatAreNotLibraries) {
  const Scratch scratch;
  std::ofstream(scratch / "libtriax_core.so") << "not a library";
  EXPECT_THAT(link_hint("ncclAllReduce", "comm-mine", scratch.folder()), HasSubstr("NCCL"));
}

} // namespace

} // namespace triax::plugin
