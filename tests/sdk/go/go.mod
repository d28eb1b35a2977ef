module sallyport/sdktests

go 1.20

require github.com/alibaba/OpenSandbox/sdks/sandbox/go v1.0.2
