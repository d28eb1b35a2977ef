# flags.cmake - every compiler and linker flag of the project, in one place
#
# SALLYPORT_SANITIZE  ""  or e.g. "address,undefined"
# SALLYPORT_FUZZ      ON: clang libFuzzer targets are built

option(SALLYPORT_FUZZ "build the libFuzzer targets (clang)" OFF)
set(SALLYPORT_SANITIZE "" CACHE STRING "sanitizers, comma separated")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_definitions(_GNU_SOURCE)
add_compile_options(
	-Wall -Wextra -Werror
	-Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla
	-Wformat=2 -Wundef -Wpointer-arith -Wwrite-strings
	-Werror=incompatible-pointer-types
	-Wno-missing-field-initializers
	-fno-strict-aliasing -fno-plt -g)

# Hardening. The sanitizers bring their own checks and dislike FORTIFY.
add_compile_options(-fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
	add_compile_options(-fcf-protection)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed)
if(SALLYPORT_SANITIZE)
	add_compile_options(-fsanitize=${SALLYPORT_SANITIZE}
		-fno-sanitize-recover=all)
	add_link_options(-fsanitize=${SALLYPORT_SANITIZE})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
	add_compile_definitions(_FORTIFY_SOURCE=2)
endif()
if(SALLYPORT_FUZZ)
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# Only the sanitizers walk frames; without them a release saves a fortieth.
set(CMAKE_C_FLAGS_RELEASE "-O2 -fomit-frame-pointer")
set(CMAKE_C_FLAGS_DEBUG "-O1 -fno-omit-frame-pointer")

# Programs of a release are optimised as a whole: exchanges are many small
# functions of many rooms, a quarter fewer instructions this way. Tests link the
# same libraries without it.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
	set(ROOM_OPTIONS -flto=auto -ffat-lto-objects)
	set(PROGRAM_LINK_OPTIONS -flto=auto -O2)
endif()
