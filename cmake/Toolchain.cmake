# What has to be decided before any target exists: launcher, linker, sanitizers.

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

# Debian's lld-22 installs its unversioned name outside PATH; GCC finds it through -B.
find_program(LLD_22 ld.lld PATHS /usr/lib/llvm-22/bin NO_DEFAULT_PATH)
if(LLD_22)
  get_filename_component(lld_dir ${LLD_22} DIRECTORY)
  add_link_options(-fuse-ld=lld -B${lld_dir})
endif()

# Small binaries: the runner takes from the libraries only what it calls.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

if(LOCUTION_SANITIZE)
  add_compile_options(-fsanitize=${LOCUTION_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCUTION_SANITIZE})
  if(LOCUTION_SANITIZE MATCHES undefined)
    # Generated kernels carry no type prefix, and LLVM's classes are checked in LLVM's own builds.
    add_compile_options(-fno-sanitize=vptr,function)
  endif()
endif()
if(LOCUTION_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
