# Required by the interpreter before a project's tests: writes which tests of minitest or test-unit start and end.
require 'json'

module IterdevEvents
  PROCESS = Process.pid

  def self.write(event, test = '')
    return unless Process.pid == PROCESS && ENV['ITERDEV_TEST_EVENTS']

    line = JSON.generate({ event: event, test: test.to_s.scrub })
    File.open(ENV['ITERDEV_TEST_EVENTS'], 'a') { |file| file.puts(line) }
  end

  module MinitestRun
    def run(*)
      IterdevEvents::LOADING.disable
      IterdevEvents.write('begin')
      passed = super
      IterdevEvents.write('end')
      passed
    end
  end

  # Adds the reporter once the project's own ones are known.
  module MinitestReporters
    def init_plugins(options)
      super
      reporter << IterdevEvents.minitest_reporter
    end
  end

  def self.minitest_reporter
    Class.new(Minitest::AbstractReporter) do
      def prerecord(klass, name)
        IterdevEvents.write('start', "#{klass}::#{name}")
      end

      def record(result)
        klass = result.respond_to?(:klass) ? result.klass : result.class
        outcome = result.skipped? ? 'skipped' : result.passed? ? 'passed' : 'failed'
        IterdevEvents.write(outcome, "#{klass}::#{result.name}")
      end
    end.new
  end

  # Prepended to Test::Unit::TestCase.
  module TestUnitRun
    def run(*)
      name = "#{self.class}::#{respond_to?(:local_name) ? local_name : method_name}"
      IterdevEvents.write('start', name)
      super
    ensure
      outcome = @iterdev_skipped ? 'skipped' : 'passed'
      IterdevEvents.write(passed? ? outcome : 'failed', name)
    end

    private

    def add_omission(*)
      @iterdev_skipped = true
      super
    end

    def add_pending(*)
      @iterdev_skipped = true
      super
    end
  end

  module TestUnitRunner
    def run(*)
      IterdevEvents::LOADING.disable
      IterdevEvents.write('begin')
      passed = super
      IterdevEvents.write('end')
      passed
    end
  end

  def self.extend_runners
    if defined?(Minitest) && Minitest.respond_to?(:init_plugins) && !@minitest
      @minitest = true
      Minitest.singleton_class.prepend(MinitestRun, MinitestReporters)
    end
    if defined?(Test::Unit::AutoRunner) && defined?(Test::Unit::TestCase) && !@test_unit
      @test_unit = true
      Test::Unit::TestCase.prepend(TestUnitRun)
      Test::Unit::AutoRunner.prepend(TestUnitRunner)
    end
  end

  # The runner is loaded by the tests; when a class of it has ended, it can be extended.
  LOADING = TracePoint.new(:end) { IterdevEvents.extend_runners }
  LOADING.enable
end
